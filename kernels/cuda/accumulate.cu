// dst = dst + alpha src.
#include "kernels/cuda/elementwise.cuh"
#include "ops/accumulate.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_accumulate {
namespace {

struct Accumulate {
  float alpha;
  __device__ float operator()(const float (&x)[2]) const { return fmaf(alpha, x[1], x[0]); }
};

/// dst[i,j] += alpha src[i,j], fused; dst, src (m,n) float32, row-major, any leading dimension, apart. 12 m n bytes.
void run(const ops::AccumulateArgs& args, Device& device) {
  map(map_of(args.dst, args.dst, args.src), Accumulate{static_cast<float>(args.alpha)}, device);
}

const KernelRegistration vectors_kernel{{.id = "accumulate/" ASSAY_CUDA_NAME "/vectors",
                                         .arithmetic = {.functions = FunctionLibrary::cuda},
                                         .summary = "one pass, 16 bytes a thread where rows are aligned",
                                         .run = &run_typed<ops::AccumulateArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_accumulate
