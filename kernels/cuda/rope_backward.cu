// Gradient of rope with CUDA: the rotation back.
#include "kernels/cuda/rotary.cuh"
#include "ops/rope_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rope_backward {
namespace {

using ops::RopeBackwardArgs;

const KernelRegistration registrations[] = {
    KernelRegistration(rotary_row<RopeBackwardArgs, float>("rope_backward", "rope_backward/" ASSAY_CUDA_NAME "/rows")),
    KernelRegistration(rotary_row<RopeBackwardArgs, Half>("rope_backward", "rope_backward/" ASSAY_CUDA_NAME "/rows_f16")),
    KernelRegistration(rotary_row<RopeBackwardArgs, BFloat16>("rope_backward", "rope_backward/" ASSAY_CUDA_NAME "/rows_bf16")),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rope_backward
