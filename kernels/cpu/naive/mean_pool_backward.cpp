// The gradient of the mean of the first tokens of each sequence on the CPU, in plain loops.
#include "ops/mean_pool_backward.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_mean_pool_backward {
namespace {

using ops::MeanPoolBackwardArgs;

/// dx[b,i,j] = dy[b,j] / lengths[b] where i < lengths[b], else 0
///   dy (b,h), dx (b,s,h): row-major float32, any outer strides; lengths (b) from 1 to s; dx shares no memory with dy.
/// One rounding an element.
void naive(const MeanPoolBackwardArgs& args, Device&) {
  for (Index b = 0; b < args.b; ++b)
    for (Index i = 0; i < args.s; ++i)
      for (Index j = 0; j < args.h; ++j)
        args.dx(b, i, j) = i < args.lengths(b) ? args.dy(b, j) / static_cast<float>(args.lengths(b)) : 0.0F;
}

const KernelRegistration naive_kernel{
    {.id = "mean_pool_backward/cpu/naive", .summary = "three loops", .run = &run_typed<MeanPoolBackwardArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_mean_pool_backward
