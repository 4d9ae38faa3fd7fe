// Wrong silu_backward.
#include "ops/silu_backward.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::silu_backward_mutants {
namespace {

enum class Fault { gradient_passed_on, dy_ignored, sign, square_missing };

template <Fault F>
void mutant(const ops::SiluBackwardArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      const float x = args.x(i, j), dy = args.dy(i, j), s = 1 / (1 + std::exp(-x));
      float dx = dy * (s * (1 + x * (1 - s)));
      if (F == Fault::gradient_passed_on) dx = dy;
      if (F == Fault::dy_ignored) dx = s * (1 + x * (1 - s));
      if (F == Fault::sign) dx = dy * (s * (1 - x * (1 - s)));
      if (F == Fault::square_missing) dx = dy * (s * (1 + x));
      args.dx(i, j) = dx;
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::SiluBackwardArgs, &mutant<F>>("silu_backward", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::gradient_passed_on>("mutant/cpu/silu_backward/gradient_passed_on", "dx = dy (bug 41)"),
    add<Fault::dy_ignored>("mutant/cpu/silu_backward/dy_ignored", "the slope alone"),
    add<Fault::sign>("mutant/cpu/silu_backward/sign", "s - x s (1 - s)"),
    add<Fault::square_missing>("mutant/cpu/silu_backward/square_missing", "s (1 + x) in place of s (1 + x (1 - s))"),
};

}  // namespace
}  // namespace assay::mutants::silu_backward_mutants
