// Root mean square normalization with CUDA.
#include "kernels/cuda/rmsnorm.cuh"
#include "ops/rmsnorm.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm {
namespace {

using ops::RmsnormArgs;

const KernelRegistration registrations[] = {
    KernelRegistration(rmsnorm_row<RmsnormArgs, float>("rmsnorm/" ASSAY_CUDA_NAME "/rows")),
    KernelRegistration(rmsnorm_row<RmsnormArgs, Half>("rmsnorm/" ASSAY_CUDA_NAME "/rows_f16")),
    KernelRegistration(rmsnorm_row<RmsnormArgs, BFloat16>("rmsnorm/" ASSAY_CUDA_NAME "/rows_bf16")),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm
