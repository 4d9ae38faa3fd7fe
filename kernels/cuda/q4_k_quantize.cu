// Q4_K super-blocks of values with CUDA.
#include "kernels/cuda/q4_k_quantize.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_quantize {
namespace {

const KernelRegistration warp_per_block_row{q4k_quantize_row<&q4k_quantize<>>(
    "q4_k_quantize/" ASSAY_CUDA_NAME "/warp_per_block", "kernels/cuda/q4_k_quantize.cuh",
    "a warp per super-block, eight values a lane, minima and maxima by shuffles")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_quantize
