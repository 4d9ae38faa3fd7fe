// y = sums of the columns of x.
#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "ops/column_sum.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_column_sum {
namespace {

/// y[j] = sum_i x[i,j]; x (m,n) float32, row-major, any leading dimension; y (n); apart. One pass, 4 m n bytes. Error at
/// most m·u·sum_i |x[i,j]|.
void run(const ops::ColumnSumArgs& args, Device& device) {
  column_sums(ColumnSums<>{1, args.m, args.n, args.x.data(), 0, leading(args.x), nullptr, args.y.data(), 0, nullptr, 0},
              device);
}

const KernelRegistration stripes_kernel{
    {.id = "column_sum/" ASSAY_CUDA_NAME "/stripes",
     .arithmetic = {.functions = FunctionLibrary::cuda},
     .summary = "a block per tile of columns, stripes of rows added in a fixed order",
     .run = &run_typed<ops::ColumnSumArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_column_sum
