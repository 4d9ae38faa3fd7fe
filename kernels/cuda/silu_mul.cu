// The gate of SwiGLU with CUDA.
#include "kernels/cuda/silu_mul.cuh"
#include "ops/silu_mul.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul {
namespace {

using ops::SiluMulArgs;

const KernelRegistration registrations[] = {
    KernelRegistration(silu_mul_row<SiluMulArgs, float>("silu_mul/" ASSAY_CUDA_NAME "/vectors")),
    KernelRegistration(silu_mul_row<SiluMulArgs, Half>("silu_mul/" ASSAY_CUDA_NAME "/vectors_f16")),
    KernelRegistration(silu_mul_row<SiluMulArgs, BFloat16>("silu_mul/" ASSAY_CUDA_NAME "/vectors_bf16")),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul
