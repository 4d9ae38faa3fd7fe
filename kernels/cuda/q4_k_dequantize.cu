// Values of Q4_K super-blocks with CUDA.
#include "kernels/cuda/q4_k_dequantize.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_dequantize {
namespace {

const KernelRegistration warp_per_block_row{q4k_dequantize_row<&q4k_dequantize<>>(
    "q4_k_dequantize/" ASSAY_CUDA_NAME "/warp_per_block", "kernels/cuda/q4_k_dequantize.cuh",
    "a warp per super-block, eight values a lane")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_dequantize
