// y = sums of the columns of x on the CPU, in plain loops.
#include "ops/column_sum.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_column_sum {
namespace {

using ops::ColumnSumArgs;

/// y[j] = sum_i x[i,j]
///   x (m,n): row-major float32, any leading dimension; y (n); they share no memory.
/// One sum a column, i ascending. Error at most m·u·sum_i |x[i,j]|. Cost 4 m n bytes.
void naive(const ColumnSumArgs& args, Device&) {
  for (Index j = 0; j < args.n; ++j) {
    float sum = 0.0F;
    for (Index i = 0; i < args.m; ++i) sum += args.x(i, j);
    args.y(j) = sum;
  }
}

const KernelRegistration naive_kernel{
    {.id = "column_sum/cpu/naive", .summary = "one sum per column", .run = &run_typed<ColumnSumArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_column_sum
