// Gradients of rmsnorm with CUDA.
#include "kernels/cuda/rmsnorm_backward.cuh"
#include "ops/rmsnorm_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm_backward {
namespace {

const KernelRegistration rows_kernel{
    rmsnorm_backward_row<ops::RmsnormBackwardArgs>("rmsnorm_backward/" ASSAY_CUDA_NAME "/rows")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm_backward
