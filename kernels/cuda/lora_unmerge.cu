// Subtracts the adapter from the weight with CUDA: the kernels of naive16.cuh and register_tiled.cuh.
#include "kernels/cuda/affine_product.cuh"
#include "kernels/lora.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_lora_unmerge {
namespace {

using ops::LoraUnmergeArgs;

const KernelRegistration naive16{composed_kernel<LoraUnmergeArgs, &lora_unmerge_by<&multiply<Naive16>>>(
    "lora_unmerge/" ASSAY_CUDA_NAME "/naive16", kNaive16)};
const KernelRegistration register_tiled{
    preferred(composed_kernel<LoraUnmergeArgs, &lora_unmerge_by<&multiply<RegisterTiled>>, 128>(
        "lora_unmerge/" ASSAY_CUDA_NAME "/register_tiled", kRegisterTiled))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_lora_unmerge
