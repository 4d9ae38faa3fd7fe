// Softmax of rows on the CPU, in plain loops.
#include "ops/softmax.hpp"

#include <cmath>

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_softmax {
namespace {

using ops::SoftmaxArgs;

/// y[i,j] = exp(x[i,j] - m) / sum_k exp(x[i,k] - m), m = max_k x[i,k]; zeros if all of a row is -inf
///   x, y (rows,n): of S, rows dense; they share no memory. The maximum is found before the first exponential.
template <class S>
void naive(const SoftmaxArgs& args, Device&) {
  const View<const S> x = args.x.as<const S>();
  const View<S> y = args.y.as<S>();
  for (Index i = 0; i < args.rows; ++i) {
    float shift = widen(x(i, 0)), sum = 0.0F;
    for (Index j = 1; j < args.n; ++j) shift = shift < widen(x(i, j)) ? widen(x(i, j)) : shift;
    if (shift == -INFINITY) shift = 0.0F;
    const auto power = [&](Index j) { return std::exp(widen(x(i, j)) - shift); };
    for (Index j = 0; j < args.n; ++j) sum += power(j);
    for (Index j = 0; j < args.n; ++j) y(i, j) = narrow<S>(sum == 0.0F ? 0.0F : power(j) / sum);
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "four loops a row", .run = &run_typed<SoftmaxArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "softmax/cpu/naive"),
                                            add<Half>(DType::f16, "softmax/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "softmax/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_softmax
