// Clipping of gradients by their global norm with CUDA: the norm, then one pass to scale.
#include "kernels/cuda/global_grad_norm.cuh"
#include "ops/clip_grad_norm.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_clip_grad_norm {
namespace {

/// g[i] *= limit / (norm[0] + eps), unless norm[0] + eps is at most the limit.
__global__ void __launch_bounds__(256) clip_kernel(Index n, float* g, const float* norm, float limit, float eps) {
  const float divisor = norm[0] + eps;
  if (divisor <= limit) return;
  const float by = limit / divisor;
  const bool aligned = aligned16(g);
  for (Index i = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * 4; i < n; i += Index{gridDim.x} * blockDim.x * 4) {
    const float4 v = load4(g, i, n, aligned);
    store4(g, i, n, aligned, make_float4(v.x * by, v.y * by, v.z * by, v.w * by));
  }
}

void run(const ops::ClipGradNormArgs& args, Device& device) {
  const unsigned threads = row_threads(args.n, 4), blocks = norm_blocks(args.n, threads);
  const Buffer scratch = device.allocate(blocks * sizeof(float));
  auto* const partial = static_cast<float*>(scratch.address());
  launch_norm(args.n, args.g.data(), args.norm.data(), partial, blocks, threads, device);
  launch(&clip_kernel, {dim3(blocks), dim3(threads)}, device, args.n, args.g.data(), args.norm.data(),
         static_cast<float>(args.max_norm), static_cast<float>(args.eps));
}

const KernelRegistration two_stages{{.id = "clip_grad_norm/" ASSAY_CUDA_NAME "/two_stages",
                                     .arithmetic = {.functions = FunctionLibrary::cuda},
                                     .summary = "partial sums of up to 1024 blocks, added by one; one pass to scale",
                                     .run = &run_typed<ops::ClipGradNormArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_clip_grad_norm
