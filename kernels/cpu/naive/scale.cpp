// y = alpha x on the CPU, in plain loops.
#include "ops/scale.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_scale {
namespace {

/// y[i,j] = alpha x[i,j]
///   x, y (m,n): row-major float32, any leading dimension; they share no memory.
/// One rounding an element. Cost 8 m n bytes.
void naive(const ops::ScaleArgs& args, Device&) {
  const auto alpha = static_cast<float>(args.alpha);
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.y(i, j) = alpha * args.x(i, j);
}

const KernelRegistration naive_kernel{
    {.id = "scale/cpu/naive", .summary = "two loops", .run = &run_typed<ops::ScaleArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_scale
