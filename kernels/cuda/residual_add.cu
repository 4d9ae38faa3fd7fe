// y = x + alpha r with CUDA.
#include "kernels/cuda/residual_add.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_residual_add {
namespace {

const KernelRegistration vectors_row{map_kernel_row<ops::ResidualAddArgs, &residual_add<>>(
    "residual_add", "residual_add/" ASSAY_CUDA_NAME "/vectors", "kernels/cuda/residual_add.cuh",
    "one pass, 16 bytes a thread where rows are aligned")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_residual_add
