// A linear layer with a low-rank adapter, with CUDA: the kernels of naive16.cuh, register_tiled.cuh and
// mma_product.cuh.
#include "kernels/cuda/lora_product.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_lora_linear {
namespace {

using ops::LoraLinearArgs;

const KernelRegistration naive16{composed_kernel<LoraLinearArgs, &lora_linear_by<&multiply<Naive16>>>(
    "lora_linear/" ASSAY_CUDA_NAME "/naive16", kNaive16)};
const KernelRegistration register_tiled{
    preferred(composed_kernel<LoraLinearArgs, &lora_linear_by<&multiply<RegisterTiled>>, 128>(
        "lora_linear/" ASSAY_CUDA_NAME "/register_tiled", kRegisterTiled))};

template <class S>
Kernel naive16_stored(std::string_view id) {
  return composed_kernel<LoraLinearArgs, &lora_linear_in_one_rounding<&lora_product<Naive16Lora, S>>, 16, S>(id,
                                                                                                             kNaive16);
}
template <class S>
Kernel mma(std::string_view id) {
  return preferred(
      declaring(lora_mma_arithmetic<S>(),
                composed_kernel<LoraLinearArgs, &lora_linear_in_one_rounding<&lora_product<MmaLora, S>>, 128, S>(
                    id, kMmaLowRank)));
}
const KernelRegistration stored[] = {
    KernelRegistration(naive16_stored<Half>("lora_linear/" ASSAY_CUDA_NAME "/naive16_f16")),
    KernelRegistration(naive16_stored<BFloat16>("lora_linear/" ASSAY_CUDA_NAME "/naive16_bf16")),
    KernelRegistration(mma<Half>("lora_linear/" ASSAY_CUDA_NAME "/mma_f16")),
    KernelRegistration(mma<BFloat16>("lora_linear/" ASSAY_CUDA_NAME "/mma_bf16"))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_lora_linear
