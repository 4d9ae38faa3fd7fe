// y = value on the CPU, in plain loops.
#include "ops/fill.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_fill {
namespace {

/// y[i,j] = value
///   y (m,n): row-major float32, any leading dimension.
/// Nothing is rounded: parameters are float32 numbers. Cost 4 m n bytes.
void naive(const ops::FillArgs& args, Device&) {
  const auto value = static_cast<float>(args.value);
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.y(i, j) = value;
}

const KernelRegistration naive_kernel{
    {.id = "fill/cpu/naive", .summary = "two loops", .run = &run_typed<ops::FillArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_fill
