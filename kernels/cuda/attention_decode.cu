// Attention of one position against a cache with CUDA.
#include "kernels/cuda/attention_decode.cuh"
#include "ops/attention_decode.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_decode {
namespace {

using Args = ops::AttentionDecodeArgs;
const KernelRegistration f32_row{decode_row<Args, float>("attention_decode/" ASSAY_CUDA_NAME "/split_keys")};
const KernelRegistration f16_row{decode_row<Args, Half>("attention_decode/" ASSAY_CUDA_NAME "/split_keys_f16")};
const KernelRegistration bf16_row{decode_row<Args, BFloat16>("attention_decode/" ASSAY_CUDA_NAME "/split_keys_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_decode
