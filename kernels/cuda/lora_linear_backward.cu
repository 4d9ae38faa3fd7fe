// Gradients of a linear layer with a low-rank adapter, with CUDA: the kernels of naive16.cuh and register_tiled.cuh.
#include "kernels/cuda/affine_product.cuh"
#include "kernels/lora.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_lora_linear_backward {
namespace {

using ops::LoraLinearBackwardArgs;

const KernelRegistration naive16{composed_kernel<LoraLinearBackwardArgs, &lora_linear_backward_by<&multiply<Naive16>>>(
    "lora_linear_backward/" ASSAY_CUDA_NAME "/naive16", kNaive16)};
const KernelRegistration register_tiled{
    preferred(composed_kernel<LoraLinearBackwardArgs, &lora_linear_backward_by<&multiply<RegisterTiled>>, 128>(
        "lora_linear_backward/" ASSAY_CUDA_NAME "/register_tiled", kRegisterTiled))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_lora_linear_backward
