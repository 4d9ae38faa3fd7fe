// y = W·x for W in Q4_K super-blocks with CUDA.
#include "kernels/cuda/q4_k_gemv.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_gemv {
namespace {

const KernelRegistration warp_per_rows_row{q4k_gemv_row<&q4k_gemv<>>(
    "q4_k_gemv/" ASSAY_CUDA_NAME "/warp_per_two_rows", "kernels/cuda/q4_k_gemv.cuh",
    "a warp sums two rows, 64 codes a lane at a time; x in shared memory, 8192 values at a time")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_gemv
