// y = alpha x.
#include "kernels/cuda/elementwise.cuh"
#include "ops/scale.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_scale {
namespace {

struct Scale {
  float alpha;
  __device__ float operator()(const float (&x)[1]) const { return alpha * x[0]; }
};

/// y[i,j] = alpha x[i,j]; x, y (m,n) float32, row-major, any leading dimension, apart. One rounding. 8 m n bytes.
void run(const ops::ScaleArgs& args, Device& device) {
  map(map_of(args.y, args.x), Scale{static_cast<float>(args.alpha)}, device);
}

const KernelRegistration vectors_kernel{{.id = "scale/" ASSAY_CUDA_NAME "/vectors",
                                         .arithmetic = {.functions = FunctionLibrary::cuda},
                                         .summary = "one pass, 16 bytes a thread where rows are aligned",
                                         .run = &run_typed<ops::ScaleArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_scale
