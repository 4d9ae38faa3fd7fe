// Wrong normalizations and their gradients.
#include "ops/rmsnorm.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "kernels/storage.hpp"
#include "ops/rmsnorm_backward.hpp"

namespace assay::mutants::rmsnorm_mutants {
namespace {

enum class Fault {
  eps_outside, eps_hard_coded, eps_forgotten, divides_by_less, weight_plus_one, weight_forgotten, tail_dropped,
  rrms_unwritten, row_reused, mean_subtracted, truncates, nan_swallowed,
};

template <Fault F, class S = float>
void forward(const ops::RmsnormArgs& args, Device&) {
  const View<const S> x = args.x.as<const S>();
  const View<S> y = args.y.as<S>();
  const auto n = static_cast<float>(args.n);
  const float eps = F == Fault::eps_hard_coded ? 1e-5F : F == Fault::eps_forgotten ? 0.0F : static_cast<float>(args.eps);
  float rrms = 0;
  for (Index i = 0; i < args.rows; ++i) {
    const Index counted = F == Fault::tail_dropped && args.n > 8 ? args.n / 8 * 8 : args.n;
    float squares = 0, sum = 0;
    for (Index j = 0; j < counted; ++j) {
      const float v = widen(x(i, j));
      if (F == Fault::nan_swallowed && std::isnan(v)) continue;
      squares += v * v;
      sum += v;
    }
    const float divisor = F == Fault::divides_by_less ? std::max(n - 1, 1.0F) : n;
    const float mean = F == Fault::mean_subtracted ? sum / n : 0;
    // A row whose first element equals the one before is taken for it.
    const bool reused = F == Fault::row_reused && i > 0 && widen(x(i, 0)) == widen(x(i - 1, 0));
    if (!reused) {
      const float mean_square = squares / divisor - mean * mean;
      rrms = F == Fault::eps_outside ? 1 / (std::sqrt(mean_square) + eps) : 1 / std::sqrt(mean_square + eps);
    }
    if (F != Fault::rrms_unwritten) args.rrms(i) = rrms;
    for (Index j = 0; j < args.n; ++j) {
      const float weight = F == Fault::weight_forgotten ? 1 : F == Fault::weight_plus_one ? 1 + args.weight(j) : args.weight(j);
      const float result = (widen(x(i, j)) - mean) * rrms * weight;
      if constexpr (F == Fault::truncates) y(i, j).bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(result) >> 16);
      else y(i, j) = narrow<S>(result);
    }
  }
}

enum class Gradient { weight_outside, eps_again, no_projection, divides_by_less, dweight_accumulates, dweight_of_last_row, x_not_normalized };

template <Gradient F>
void backward(const ops::RmsnormBackwardArgs& args, Device&) {
  const auto n = static_cast<float>(args.n);
  const float divisor = F == Gradient::divides_by_less ? std::max(n - 1, 1.0F) : n;
  if (F != Gradient::dweight_accumulates)
    for (Index j = 0; j < args.n; ++j) args.dweight(j) = 0;
  for (Index i = 0; i < args.rows; ++i) {
    float rrms = args.rrms(i), squares = 0, projection = 0;
    for (Index j = 0; j < args.n; ++j) squares += args.x(i, j) * args.x(i, j);
    if (F == Gradient::eps_again) rrms = 1 / std::sqrt(squares / n + 1e-5F);
    for (Index j = 0; j < args.n; ++j) {
      const float w = F == Gradient::weight_outside ? 1 : args.weight(j);
      projection += args.dy(i, j) * w * (args.x(i, j) * rrms);
      const float term = args.dy(i, j) * (F == Gradient::x_not_normalized ? args.x(i, j) : args.x(i, j) * rrms);
      args.dweight(j) = F == Gradient::dweight_of_last_row ? term : args.dweight(j) + term;
    }
    const float mean = F == Gradient::no_projection ? 0 : projection / divisor;
    for (Index j = 0; j < args.n; ++j)
      args.dx(i, j) = F == Gradient::weight_outside
                          ? rrms * args.weight(j) * (args.dy(i, j) - args.x(i, j) * rrms * mean)
                          : rrms * (args.dy(i, j) * args.weight(j) - args.x(i, j) * rrms * mean);
  }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::RmsnormArgs, &forward<F>>("rmsnorm", id, fault);
}
template <Gradient F>
KernelRegistration add_gradient(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::RmsnormBackwardArgs, &backward<F>>("rmsnorm_backward", id, fault);
}
KernelRegistration add_bf16(std::string_view id, std::string_view fault) {
  return KernelRegistration({.op = "rmsnorm", .id = id, .storage = DType::bf16, .source = "falsify/mutants/cpu",
                             .summary = "wrong on purpose", .role = KernelRole::mutant, .fault = fault,
                             .run = &run_typed<ops::RmsnormArgs, &forward<Fault::truncates, BFloat16>>});
}

const KernelRegistration registrations[] = {
    add<Fault::eps_outside>("mutant/cpu/rmsnorm/eps_outside", "eps is added to the root, not inside it"),
    add<Fault::eps_hard_coded>("mutant/cpu/rmsnorm/eps_hard_coded", "eps is 1e-5 whatever the caller says (bug 43)"),
    add<Fault::eps_forgotten>("mutant/cpu/rmsnorm/eps_forgotten", "eps is left out"),
    add<Fault::divides_by_less>("mutant/cpu/rmsnorm/divides_by_less", "the sum of squares is divided by n - 1"),
    add<Fault::weight_plus_one>("mutant/cpu/rmsnorm/weight_plus_one", "scales by 1 + weight, as other models do"),
    add<Fault::weight_forgotten>("mutant/cpu/rmsnorm/weight_forgotten", "weight is left out"),
    add<Fault::tail_dropped>("mutant/cpu/rmsnorm/tail_dropped", "floor instead of ceiling of n / 8 in the sum (bug 8)"),
    add<Fault::rrms_unwritten>("mutant/cpu/rmsnorm/rrms_unwritten", "rrms is never written"),
    add<Fault::row_reused>("mutant/cpu/rmsnorm/row_reused", "a row is taken for the one before where they begin alike"),
    add<Fault::mean_subtracted>("mutant/cpu/rmsnorm/mean_subtracted", "layer normalization: the mean is taken off"),
    add<Fault::nan_swallowed>("mutant/cpu/rmsnorm/nan_swallowed", "NaN is left out of the sum"),
    add_bf16("mutant/cpu/rmsnorm/truncates_bf16", "bfloat16 by truncation (bug 87)"),
    add_gradient<Gradient::weight_outside>("mutant/cpu/rmsnorm_backward/weight_outside", "weight is applied outside the projection (bug 33)"),
    add_gradient<Gradient::eps_again>("mutant/cpu/rmsnorm_backward/eps_again", "rrms is computed again, with eps 1e-5 (bug 43)"),
    add_gradient<Gradient::no_projection>("mutant/cpu/rmsnorm_backward/no_projection", "rrms is taken for a constant"),
    add_gradient<Gradient::divides_by_less>("mutant/cpu/rmsnorm_backward/divides_by_less", "the projection is divided by n - 1"),
    add_gradient<Gradient::dweight_accumulates>("mutant/cpu/rmsnorm_backward/dweight_accumulates", "dweight adds to what was there (bug 23)"),
    add_gradient<Gradient::dweight_of_last_row>("mutant/cpu/rmsnorm_backward/dweight_of_last_row", "dweight is the last row's alone (bug 43)"),
    add_gradient<Gradient::x_not_normalized>("mutant/cpu/rmsnorm_backward/x_not_normalized", "dweight sums dy·x without rrms"),
};

}  // namespace
}  // namespace assay::mutants::rmsnorm_mutants
