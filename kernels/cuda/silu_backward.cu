// dx = dy times the slope of x sigmoid(x) with CUDA.
#include "kernels/cuda/silu_backward.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_backward {
namespace {

const KernelRegistration vectors_row{map_kernel_row<ops::SiluBackwardArgs, &silu_backward<>>(
    "silu_backward", "silu_backward/" ASSAY_CUDA_NAME "/vectors", "kernels/cuda/silu_backward.cuh",
    "one pass, 16 bytes a thread where rows are aligned")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_backward
