// Wrong gates and gradients.
#include "ops/silu_mul.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "ops/silu_mul_backward.hpp"

namespace assay::mutants::silu_mul_mutants {
namespace {

enum class Fault { exchanged, up_forgotten, gelu, hard_sigmoid, clamped, row_of_hidden_size, nan_swallowed, tail_unwritten };

template <Fault F>
void forward(const ops::SiluMulArgs& args, Device&) {
  const View<const float> gate = args.gate.as<const float>(), up = args.up.as<const float>();
  const View<float> y = args.y.as<float>();
  // A buffer of the hidden size, a quarter of the intermediate one, holds what is kept (bug 16).
  const Index kept = F == Fault::row_of_hidden_size ? (args.n + 3) / 4
                     : F == Fault::tail_unwritten && args.n > 16 ? args.n / 16 * 16
                                                                 : args.n;
  for (Index i = 0; i < args.rows; ++i)
    for (Index j = 0; j < kept; ++j) {
      float g = gate(i, j), u = up(i, j);
      if (F == Fault::exchanged) std::swap(g, u);
      if (F == Fault::up_forgotten) u = 1;
      if (F == Fault::nan_swallowed && std::isnan(g)) g = 0;
      float s = 1 / (1 + std::exp(-g));
      if (F == Fault::gelu) s = 0.5F * (1 + std::erf(g * 0.70710678F));
      if (F == Fault::hard_sigmoid) s = std::clamp(g / 6 + 0.5F, 0.0F, 1.0F);
      if (F == Fault::clamped) s = 1 / (1 + std::exp(-std::clamp(g, -20.0F, 20.0F)));
      y(i, j) = g * s * u;
    }
}

enum class Gradient { no_up, dup_absent, sigmoid_slope, gate_for_silu, dy_forgotten, accumulates };

template <Gradient F>
void backward(const ops::SiluMulBackwardArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i)
    for (Index j = 0; j < args.n; ++j) {
      const float g = args.gate(i, j), u = args.up(i, j), s = 1 / (1 + std::exp(-g));
      const float dy = F == Gradient::dy_forgotten ? 1 : args.dy(i, j);
      const float slope = F == Gradient::sigmoid_slope ? s * (1 - s) : s * (1 + g * (1 - s));
      const float dgate = dy * (F == Gradient::no_up ? 1 : u) * slope;
      args.dgate(i, j) = F == Gradient::accumulates ? args.dgate(i, j) + dgate : dgate;
      if (F != Gradient::dup_absent) args.dup(i, j) = dy * (F == Gradient::gate_for_silu ? g : g * s);
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::SiluMulArgs, &forward<F>>("silu_mul", id, fault);
}
template <Gradient F>
KernelRegistration add_gradient(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::SiluMulBackwardArgs, &backward<F>>("silu_mul_backward", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::exchanged>("mutant/cpu/silu_mul/exchanged", "silu of up, times gate"),
    add<Fault::up_forgotten>("mutant/cpu/silu_mul/up_forgotten", "silu alone"),
    add<Fault::gelu>("mutant/cpu/silu_mul/gelu", "GELU for SiLU"),
    add<Fault::hard_sigmoid>("mutant/cpu/silu_mul/hard_sigmoid", "a sigmoid of three straight lines"),
    add<Fault::clamped>("mutant/cpu/silu_mul/clamped", "the exponent is clamped to 20"),
    add<Fault::row_of_hidden_size>("mutant/cpu/silu_mul/row_of_hidden_size", "rows are cut at the hidden size (bug 18)"),
    add<Fault::nan_swallowed>("mutant/cpu/silu_mul/nan_swallowed", "a gate of NaN counts as 0"),
    add<Fault::tail_unwritten>("mutant/cpu/silu_mul/tail_unwritten", "floor instead of ceiling of n / 16 (bug 8)"),
    add_gradient<Gradient::no_up>("mutant/cpu/silu_mul_backward/no_up", "dgate lacks the factor up (bug 17)"),
    add_gradient<Gradient::dup_absent>("mutant/cpu/silu_mul_backward/dup_absent", "dup is never written (bug 17)"),
    add_gradient<Gradient::sigmoid_slope>("mutant/cpu/silu_mul_backward/sigmoid_slope", "the slope of sigmoid for that of silu (bug 51)"),
    add_gradient<Gradient::gate_for_silu>("mutant/cpu/silu_mul_backward/gate_for_silu", "dup is dy·gate, without the sigmoid"),
    add_gradient<Gradient::dy_forgotten>("mutant/cpu/silu_mul_backward/dy_forgotten", "an upstream gradient of ones is assumed"),
    add_gradient<Gradient::accumulates>("mutant/cpu/silu_mul_backward/accumulates", "dgate adds to what was there (bug 23)"),
};

}  // namespace
}  // namespace assay::mutants::silu_mul_mutants
