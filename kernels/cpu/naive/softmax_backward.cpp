// Gradient of softmax on the CPU, in plain loops.
#include "ops/softmax_backward.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_softmax_backward {
namespace {

using ops::SoftmaxBackwardArgs;

/// dx[i,j] = y[i,j] (dy[i,j] - sum_k y[i,k] dy[i,k])
///   y, dy, dx (rows,n): of S, rows dense; dx shares no memory with y or dy. Cost 4 rows n operations.
template <class S>
void naive(const SoftmaxBackwardArgs& args, Device&) {
  const View<const S> y = args.y.as<const S>(), dy = args.dy.as<const S>();
  const View<S> dx = args.dx.as<S>();
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0.0F;
    for (Index j = 0; j < args.n; ++j) sum += widen(y(i, j)) * widen(dy(i, j));
    for (Index j = 0; j < args.n; ++j) dx(i, j) = narrow<S>(widen(y(i, j)) * (widen(dy(i, j)) - sum));
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "two loops a row", .run = &run_typed<SoftmaxBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "softmax_backward/cpu/naive"),
                                            add<Half>(DType::f16, "softmax_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "softmax_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_softmax_backward
