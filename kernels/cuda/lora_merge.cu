// Adds the adapter to the weight with CUDA: the kernels of naive16.cuh and register_tiled.cuh.
#include "kernels/cuda/affine_product.cuh"
#include "kernels/lora.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_lora_merge {
namespace {

using ops::LoraMergeArgs;

const KernelRegistration naive16{composed_kernel<LoraMergeArgs, &lora_merge_by<&multiply<Naive16>>>(
    "lora_merge/" ASSAY_CUDA_NAME "/naive16", kNaive16)};
const KernelRegistration register_tiled{
    preferred(composed_kernel<LoraMergeArgs, &lora_merge_by<&multiply<RegisterTiled>>, 128>(
        "lora_merge/" ASSAY_CUDA_NAME "/register_tiled", kRegisterTiled))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_lora_merge
