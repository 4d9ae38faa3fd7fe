// q = the NF4 code of x / absmax with CUDA.
#include "kernels/cuda/nf4_quantize.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_quantize {
namespace {

const KernelRegistration thread_per_block_row{nf4_quantize_kernel<&nf4_thread_per_block<>>(
    "nf4_quantize/" ASSAY_CUDA_NAME "/thread_per_block", "one thread a block of 64")};
const KernelRegistration warp_per_block_row{preferred(nf4_quantize_kernel<&nf4_warp_per_block<>>(
    "nf4_quantize/" ASSAY_CUDA_NAME "/warp_per_block", "one warp a block of 64, its maximum by shuffles"))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_quantize
