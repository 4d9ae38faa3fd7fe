// dx = dy in every row.
#include "kernels/cuda/elementwise.cuh"
#include "ops/column_sum_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_column_sum_backward {
namespace {

struct Copy {
  __device__ float operator()(const float (&x)[1]) const { return x[0]; }
};

/// dx[i,j] = dy[j]; dy (n); dx (m,n) float32, row-major, any leading dimension, apart. Nothing is rounded. 4 m n bytes.
void run(const ops::ColumnSumBackwardArgs& args, Device& device) {
  const Map<1> rows{args.m, args.n, {args.dy.data()}, {0}, args.dx.data(), leading(args.dx)};
  map(rows, Copy{}, device);
}

const KernelRegistration vectors_kernel{{.id = "column_sum_backward/" ASSAY_CUDA_NAME "/vectors",
                                         .arithmetic = {.functions = FunctionLibrary::cuda},
                                         .summary = "one pass, 16 bytes a thread where rows are aligned",
                                         .run = &run_typed<ops::ColumnSumBackwardArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_column_sum_backward
