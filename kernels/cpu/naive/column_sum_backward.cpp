// dx = dy in every row on the CPU, in plain loops.
#include "ops/column_sum_backward.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_column_sum_backward {
namespace {

using ops::ColumnSumBackwardArgs;

/// dx[i,j] = dy[j]
///   dy (n); dx (m,n): row-major float32, any leading dimension; they share no memory.
/// Nothing is rounded. Cost 4 m n bytes.
void naive(const ColumnSumBackwardArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.dx(i, j) = args.dy(j);
}

const KernelRegistration naive_kernel{
    {.id = "column_sum_backward/cpu/naive", .summary = "two loops", .run = &run_typed<ColumnSumBackwardArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_column_sum_backward
