// Gradients of attention with CUDA.
#include "kernels/cuda/attention_backward_mma.cuh"
#include "ops/attention_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_backward {
namespace {

using ops::AttentionBackwardArgs;

const KernelRegistration registrations[] = {
    KernelRegistration(attention_backward_warp_row<AttentionBackwardArgs, float>("attention_backward/" ASSAY_CUDA_NAME "/warp")),
    KernelRegistration(attention_backward_row<AttentionBackwardArgs, float>("attention_backward/" ASSAY_CUDA_NAME "/tiled")),
    KernelRegistration(attention_backward_row<AttentionBackwardArgs, Half>("attention_backward/" ASSAY_CUDA_NAME "/tiled_f16")),
    KernelRegistration(attention_backward_row<AttentionBackwardArgs, BFloat16>("attention_backward/" ASSAY_CUDA_NAME "/tiled_bf16")),
    KernelRegistration(attention_backward_mma_row<AttentionBackwardArgs, float>("attention_backward/" ASSAY_CUDA_NAME "/mma_tf32x3")),
    KernelRegistration(attention_backward_mma_row<AttentionBackwardArgs, Half>("attention_backward/" ASSAY_CUDA_NAME "/mma_f16")),
    KernelRegistration(attention_backward_mma_row<AttentionBackwardArgs, BFloat16>("attention_backward/" ASSAY_CUDA_NAME "/mma_bf16")),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_backward
