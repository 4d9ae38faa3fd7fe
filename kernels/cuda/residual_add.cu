// y = x + alpha r.
#include "kernels/cuda/elementwise.cuh"
#include "ops/residual_add.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_residual_add {
namespace {

struct ResidualAdd {
  float alpha;
  __device__ float operator()(const float (&x)[2]) const { return fmaf(alpha, x[1], x[0]); }
};

/// y[i,j] = x[i,j] + alpha r[i,j], fused; x, r, y (m,n) float32, row-major, any leading dimension, y apart. 12 m n
/// bytes.
void run(const ops::ResidualAddArgs& args, Device& device) {
  map(map_of(args.y, args.x, args.r), ResidualAdd{static_cast<float>(args.alpha)}, device);
}

const KernelRegistration vectors_kernel{{.id = "residual_add/" ASSAY_CUDA_NAME "/vectors",
                                         .arithmetic = {.functions = FunctionLibrary::cuda},
                                         .summary = "one pass, 16 bytes a thread where rows are aligned",
                                         .run = &run_typed<ops::ResidualAddArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_residual_add
