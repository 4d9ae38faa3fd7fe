// y = x + alpha r on the CPU, in plain loops.
#include "ops/residual_add.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_residual_add {
namespace {

using ops::ResidualAddArgs;

/// y[i,j] = x[i,j] + alpha r[i,j]
///   x, r, y (m,n): row-major float32, any leading dimension; y shares no memory with x or r.
/// Two roundings an element, or one if fused. Cost 12 m n bytes.
void naive(const ResidualAddArgs& args, Device&) {
  const auto alpha = static_cast<float>(args.alpha);
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.y(i, j) = args.x(i, j) + alpha * args.r(i, j);
}

const KernelRegistration naive_kernel{
    {.id = "residual_add/cpu/naive", .summary = "two loops", .run = &run_typed<ResidualAddArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_residual_add
