// Gradients of silu_mul with CUDA.
#include "kernels/cuda/silu_mul.cuh"
#include "ops/silu_mul_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul_backward {
namespace {

const KernelRegistration vectors{
    silu_mul_backward_row<ops::SiluMulBackwardArgs>("silu_mul_backward/" ASSAY_CUDA_NAME "/vectors")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul_backward
