// Wrong softmaxes and gradients.
#include "ops/softmax.hpp"

#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "ops/softmax_backward.hpp"

namespace assay::mutants::softmax_mutants {
namespace {

enum class Fault { not_shifted, masked_row_nan, along_columns, last_left_out, first_is_maximum, poor_exp, nan_swallowed, logarithm_base_2, padding_leaks };

/// exp to three and a half percent: a polynomial of too low a degree (bug 91).
float poor_exp(float x) {
  const float n = std::floor(x * 1.44269504F), r = x - n * 0.69314718F;
  return x < -87 ? 0 : std::ldexp(1 + r * (1 + r * 0.5F), static_cast<int>(n));
}

template <Fault F>
float power(float x) {
  if (F == Fault::poor_exp) return poor_exp(x);
  if (F == Fault::logarithm_base_2) return std::exp2(x);
  return F == Fault::nan_swallowed && std::isnan(x) ? 0.0F : std::exp(x);
}

template <Fault F>
void forward(const ops::SoftmaxArgs& args, Device&) {
  const bool columns = F == Fault::along_columns;
  const Index lines = columns ? args.n : args.rows, length = columns ? args.rows : args.n;
  const auto x = [&](Index i, Index j) { return columns ? args.x(j, i) : args.x(i, j); };
  const auto y = [&](Index i, Index j) -> float& { return columns ? args.y(j, i) : args.y(i, j); };
  for (Index i = 0; i < lines && length > 0; ++i) {
    const Index counted = F == Fault::last_left_out && length > 1 ? length - 1 : length;
    float shift = x(i, 0), sum = 0;
    for (Index j = 1; j < counted && F != Fault::first_is_maximum; ++j) shift = shift < x(i, j) ? x(i, j) : shift;
    if (F == Fault::not_shifted) shift = 0;
    if (F == Fault::padding_leaks && args.n % 8 != 0) shift = shift < 0 ? 0 : shift;
    if (shift == -INFINITY && F != Fault::masked_row_nan) shift = 0;
    for (Index j = 0; j < counted; ++j) sum += power<F>(x(i, j) - shift);
    // Vectors of eight logits, the last filled up with zeros that count.
    if (F == Fault::padding_leaks && args.n % 8 != 0) sum += static_cast<float>(8 - args.n % 8) * std::exp(-shift);
    for (Index j = 0; j < length; ++j) y(i, j) = sum == 0 ? 0 : power<F>(x(i, j) - shift) / sum;
  }
}

enum class Gradient { sum_dropped, sum_of_dy, scaled_by_dy, last_left_out, accumulates, first_rows_sum };

template <Gradient F>
void backward(const ops::SoftmaxBackwardArgs& args, Device&) {
  float sum = 0;
  for (Index i = 0; i < args.rows; ++i) {
    if (F != Gradient::first_rows_sum || i == 0) {
      sum = 0;
      for (Index j = 0; j < (F == Gradient::last_left_out ? args.n - 1 : args.n); ++j)
        sum += F == Gradient::sum_dropped ? 0 : F == Gradient::sum_of_dy ? args.dy(i, j) : args.y(i, j) * args.dy(i, j);
    }
    for (Index j = 0; j < args.n; ++j) {
      const float scale = F == Gradient::scaled_by_dy ? args.dy(i, j) : args.y(i, j);
      args.dx(i, j) = (F == Gradient::accumulates ? args.dx(i, j) : 0) + scale * (args.dy(i, j) - sum);
    }
  }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::SoftmaxArgs, &forward<F>>("softmax", id, fault);
}
template <Gradient F>
KernelRegistration add_gradient(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::SoftmaxBackwardArgs, &backward<F>>("softmax_backward", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::not_shifted>("mutant/cpu/softmax/not_shifted", "the maximum is not taken off"),
    add<Fault::masked_row_nan>("mutant/cpu/softmax/masked_row_nan", "a masked row gives -inf - -inf (bug 40)"),
    add<Fault::along_columns>("mutant/cpu/softmax/along_columns", "the softmax is along the other axis (bug 46)"),
    add<Fault::last_left_out>("mutant/cpu/softmax/last_left_out", "the last entry has no part in maximum and sum"),
    add<Fault::first_is_maximum>("mutant/cpu/softmax/first_is_maximum", "the first entry is taken for the maximum"),
    add<Fault::poor_exp>("mutant/cpu/softmax/poor_exp", "an exponential that is off by 3.5% (bug 91)"),
    add<Fault::nan_swallowed>("mutant/cpu/softmax/nan_swallowed", "NaN counts as a masked entry"),
    add<Fault::logarithm_base_2>("mutant/cpu/softmax/base_2", "powers of 2 without the factor log2(e)"),
    add<Fault::padding_leaks>("mutant/cpu/softmax/padding_leaks", "zeros that fill the last vector up count in the sum (bug 40)"),
    add_gradient<Gradient::sum_dropped>("mutant/cpu/softmax_backward/sum_dropped", "dx = y dy"),
    add_gradient<Gradient::sum_of_dy>("mutant/cpu/softmax_backward/sum_of_dy", "the sum is of dy, not of y dy"),
    add_gradient<Gradient::scaled_by_dy>("mutant/cpu/softmax_backward/scaled_by_dy", "y and dy exchanged outside the sum"),
    add_gradient<Gradient::last_left_out>("mutant/cpu/softmax_backward/last_left_out", "the last entry has no part in the sum"),
    add_gradient<Gradient::accumulates>("mutant/cpu/softmax_backward/accumulates", "adds to what dx held (bug 23)"),
    add_gradient<Gradient::first_rows_sum>("mutant/cpu/softmax_backward/first_rows_sum", "the first row's sum serves all (bug 24)"),
};

}  // namespace
}  // namespace assay::mutants::softmax_mutants
