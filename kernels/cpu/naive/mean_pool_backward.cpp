// The gradient of the mean of the first tokens of each sequence on the CPU, in plain loops.
#include "ops/mean_pool_backward.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_mean_pool_backward {
namespace {

using ops::MeanPoolBackwardArgs;

/// dx[b,i,j] = dy[b,j] / lengths[b] where i < lengths[b], else 0
///   dy (b,h), dx (b,s,h): row-major, of S, any outer strides; lengths (b) from 1 to s; dx shares no memory with dy.
/// One rounding an element.
template <class S>
void naive(const MeanPoolBackwardArgs& args, Device&) {
  const View<const S> dy = args.dy.as<const S>();
  const View<S> dx = args.dx.as<S>();
  for (Index b = 0; b < args.b; ++b)
    for (Index i = 0; i < args.s; ++i)
      for (Index j = 0; j < args.h; ++j)
        dx(b, i, j) = narrow<S>(i < args.lengths(b) ? widen(dy(b, j)) / static_cast<float>(args.lengths(b)) : 0.0F);
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "three loops", .run = &run_typed<MeanPoolBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "mean_pool_backward/cpu/naive"),
                                            add<Half>(DType::f16, "mean_pool_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "mean_pool_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_mean_pool_backward
