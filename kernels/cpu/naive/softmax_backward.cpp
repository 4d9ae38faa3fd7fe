// Gradient of softmax on the CPU, in plain loops.
#include "ops/softmax_backward.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_softmax_backward {
namespace {

using ops::SoftmaxBackwardArgs;

/// dx[i,j] = y[i,j] (dy[i,j] - sum_k y[i,k] dy[i,k])
///   y, dy, dx (rows,n): float32, rows dense; dx shares no memory with y or dy. Cost 4 rows n operations.
void naive(const SoftmaxBackwardArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0.0F;
    for (Index j = 0; j < args.n; ++j) sum += args.y(i, j) * args.dy(i, j);
    for (Index j = 0; j < args.n; ++j) args.dx(i, j) = args.y(i, j) * (args.dy(i, j) - sum);
  }
}

const KernelRegistration naive_kernel{
    {.id = "softmax_backward/cpu/naive", .summary = "two loops a row", .run = &run_typed<SoftmaxBackwardArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_softmax_backward
