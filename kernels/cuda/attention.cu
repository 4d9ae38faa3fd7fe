// Attention with CUDA.
#include "kernels/cuda/attention_mma.cuh"
#include "ops/attention.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_attention {
namespace {

using ops::AttentionArgs;

const KernelRegistration registrations[] = {
    KernelRegistration(attention_warp_row<AttentionArgs, float>("attention/" ASSAY_CUDA_NAME "/warp")),
    KernelRegistration(attention_warp_row<AttentionArgs, Half>("attention/" ASSAY_CUDA_NAME "/warp_f16")),
    KernelRegistration(attention_warp_row<AttentionArgs, BFloat16>("attention/" ASSAY_CUDA_NAME "/warp_bf16")),
    KernelRegistration(attention_tiled_row<AttentionArgs, float>("attention/" ASSAY_CUDA_NAME "/tiled")),
    KernelRegistration(attention_tiled_row<AttentionArgs, Half>("attention/" ASSAY_CUDA_NAME "/tiled_f16")),
    KernelRegistration(attention_tiled_row<AttentionArgs, BFloat16>("attention/" ASSAY_CUDA_NAME "/tiled_bf16")),
    KernelRegistration(attention_mma_row<AttentionArgs, float>("attention/" ASSAY_CUDA_NAME "/mma_tf32x3")),
    KernelRegistration(attention_mma_row<AttentionArgs, Half>("attention/" ASSAY_CUDA_NAME "/mma_f16")),
    KernelRegistration(attention_mma_row<AttentionArgs, BFloat16>("attention/" ASSAY_CUDA_NAME "/mma_bf16")),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_attention
