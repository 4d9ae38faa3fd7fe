// Rotary position embedding with CUDA.
#include "kernels/cuda/rotary.cuh"
#include "ops/rope.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rope {
namespace {

using ops::RopeArgs;

const KernelRegistration registrations[] = {
    KernelRegistration(rotary_row<RopeArgs, float>("rope", "rope/" ASSAY_CUDA_NAME "/rows")),
    KernelRegistration(rotary_row<RopeArgs, Half>("rope", "rope/" ASSAY_CUDA_NAME "/rows_f16")),
    KernelRegistration(rotary_row<RopeArgs, BFloat16>("rope", "rope/" ASSAY_CUDA_NAME "/rows_bf16")),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rope
