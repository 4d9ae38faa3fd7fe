// q = the 8-bit code of (absmax - mean) / absmax2 with CUDA.
#include "kernels/cuda/nf4_absmax_quantize.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_absmax_quantize {
namespace {

const KernelRegistration thread_per_group_row{absmax_quantize_kernel<&absmax_thread_per_group<>>(
    "nf4_absmax_quantize/" ASSAY_CUDA_NAME "/thread_per_group", "one thread a group of 256")};
const KernelRegistration block_per_group_row{preferred(absmax_quantize_kernel<&absmax_block_per_group<>>(
    "nf4_absmax_quantize/" ASSAY_CUDA_NAME "/block_per_group",
    "one block a group of 256: sums and maxima over lanes, limits in shared memory"))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_absmax_quantize
