// y = x + bias for every row.
#include "kernels/cuda/elementwise.cuh"
#include "ops/bias_add.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add {
namespace {

struct BiasAdd {
  __device__ float operator()(const float (&x)[2]) const { return x[0] + x[1]; }
};

/// y[i,j] = x[i,j] + bias[j]; x, y (m,n) float32, row-major, any leading dimension, apart; bias (n). One rounding. 8 m
/// n bytes.
void run(const ops::BiasAddArgs& args, Device& device) {
  const Map<2> sums{args.m,        args.n,         {args.x.data(), args.bias.data()}, {leading(args.x), 0},
                    args.y.data(), leading(args.y)};
  map(sums, BiasAdd{}, device);
}

const KernelRegistration vectors_kernel{{.id = "bias_add/" ASSAY_CUDA_NAME "/vectors",
                                         .arithmetic = {.functions = FunctionLibrary::cuda},
                                         .summary = "one pass, 16 bytes a thread where rows are aligned",
                                         .run = &run_typed<ops::BiasAddArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add
