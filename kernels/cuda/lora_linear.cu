// A linear layer with a low-rank adapter, with CUDA: the kernels of naive16.cuh and register_tiled.cuh.
#include "kernels/cuda/affine_product.cuh"
#include "kernels/lora.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_lora_linear {
namespace {

using ops::LoraLinearArgs;

const KernelRegistration naive16{composed_kernel<LoraLinearArgs, &lora_linear_by<&multiply<Naive16>>>(
    "lora_linear/" ASSAY_CUDA_NAME "/naive16", kNaive16)};
const KernelRegistration register_tiled{
    preferred(composed_kernel<LoraLinearArgs, &lora_linear_by<&multiply<RegisterTiled>>, 128>(
        "lora_linear/" ASSAY_CUDA_NAME "/register_tiled", kRegisterTiled))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_lora_linear
