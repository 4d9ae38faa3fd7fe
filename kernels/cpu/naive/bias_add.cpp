// y = x + bias on the CPU, in plain loops.
#include "ops/bias_add.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_bias_add {
namespace {

using ops::BiasAddArgs;

/// y[i,j] = x[i,j] + bias[j]
///   x, y (m,n): row-major float32, any leading dimension; bias (n); y shares no memory with x or bias.
/// One rounding an element. Cost 8 m n bytes.
void naive(const BiasAddArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.y(i, j) = args.x(i, j) + args.bias(j);
}

const KernelRegistration naive_kernel{
    {.id = "bias_add/cpu/naive", .summary = "two loops", .run = &run_typed<BiasAddArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_bias_add
