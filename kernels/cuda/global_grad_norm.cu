// Euclidean norm of a gradient with CUDA.
#include "kernels/cuda/global_grad_norm.cuh"
#include "ops/global_grad_norm.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_global_grad_norm {
namespace {

void run(const ops::GlobalGradNormArgs& args, Device& device) {
  const unsigned threads = row_threads(args.n, 4), blocks = norm_blocks(args.n, threads);
  const Buffer partial = device.allocate(blocks * sizeof(float));
  launch_norm(args.n, args.g.data(), args.norm.data(), static_cast<float*>(partial.address()), blocks, threads, device);
}

const KernelRegistration two_stages{{.id = "global_grad_norm/" ASSAY_CUDA_NAME "/two_stages",
                                     .arithmetic = {.functions = FunctionLibrary::cuda},
                                     .summary = "partial sums of up to 1024 blocks, added by one",
                                     .run = &run_typed<ops::GlobalGradNormArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_global_grad_norm
