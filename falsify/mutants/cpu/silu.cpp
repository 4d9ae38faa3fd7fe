// Wrong silu.
#include "ops/silu.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::silu_mutants {
namespace {

enum class Fault { exponent_sign, two_for_one, polynomial_exp, relu_below, beta, output_cut };

/// exp as 2^k times a polynomial of degree 3: off by 1e-4.
inline float rough_exp(float x) {
  const float t = std::clamp(x, -104.0F, 88.0F) * 1.44269504F, k = std::round(t), f = (t - k) * 0.69314718F;
  return std::ldexp(1 + f * (1 + f * (0.5F + f * 0.16666667F)), static_cast<int>(k));
}

template <Fault F>
void mutant(const ops::SiluArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      const float x = args.x(i, j);
      float power = std::exp(F == Fault::exponent_sign ? x : -x);
      if (F == Fault::polynomial_exp) power = rough_exp(-x);
      if (F == Fault::beta) power = std::exp(-1.702F * x);
      float y = x / ((F == Fault::two_for_one ? 1.01F : 1.0F) + power);
      if (F == Fault::relu_below && x < -20) y = 0;
      if (F == Fault::output_cut && j >= 64) continue;
      args.y(i, j) = y;
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::SiluArgs, &mutant<F>>("silu", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::exponent_sign>("mutant/cpu/silu/exponent_sign", "exp(x) in place of exp(-x)"),
    add<Fault::two_for_one>("mutant/cpu/silu/two_for_one", "the constant 1 in the divisor is 1.01"),
    add<Fault::polynomial_exp>("mutant/cpu/silu/polynomial_exp", "exp by a polynomial of degree 3 (bug 91)"),
    add<Fault::relu_below>("mutant/cpu/silu/relu_below", "0 for x < -20"),
    add<Fault::beta>("mutant/cpu/silu/beta", "Swish with beta = 1.702, the approximation of GELU"),
    add<Fault::output_cut>("mutant/cpu/silu/output_cut", "columns past 64 unwritten (bug 18)"),
};

}  // namespace
}  // namespace assay::mutants::silu_mutants
