// y = x · Wᵀ + bias with CUDA: the kernels of naive16.cuh, register_tiled.cuh, mma_product.cuh,
// wgmma_product.cuh and few_rows.cuh; the bias is added before the only store.
#include "kernels/cuda/affine_product.cuh"
#include "kernels/cuda/few_rows.cuh"
#include "kernels/cuda/wgmma_product.cuh"
#include "kernels/linear.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_linear {
namespace {

using ops::LinearArgs;

const KernelRegistration naive16{
    composed_kernel<LinearArgs, &linear_by<&multiply<Naive16>>>("linear/" ASSAY_CUDA_NAME "/naive16", kNaive16)};
const KernelRegistration register_tiled{
    preferred(composed_kernel<LinearArgs, &linear_by<&multiply<RegisterTiled>>, 128>(
        "linear/" ASSAY_CUDA_NAME "/register_tiled", kRegisterTiled))};

template <class S>
Kernel naive16_stored(std::string_view id) {
  return composed_kernel<LinearArgs, &linear_by<&naive16_layer<S>>, 16, S>(id, kNaive16);
}
template <class S>
Kernel mma(std::string_view id) {
  return preferred(
      declaring(mma_arithmetic<S>(), composed_kernel<LinearArgs, &linear_by<&mma_layer<S>>, 128, S>(id, kMmaProduct)));
}
template <class S, bool split>
void wgmma_layer(const AffineProduct& x, Device& device) {
  if (x.m() > 0 && x.n() > 0) wgmma_product_with<false, true, split>(product_of<S>(x), biased_of<S>(x), device);
}
template <class S, bool split = false>
Kernel wgmma(std::string_view id, std::string_view summary = kWgmmaProduct) {
  return wgmma_kernel<S, 1>(composed_kernel<LinearArgs, &linear_by<&wgmma_layer<S, split>>, 128, S>(id, summary),
                            [](const Call& call) {
                              const auto args = LinearArgs::unpack(call);
                              return refuse_factors<S>(args.x, args.weight);
                            });
}
template <class S>
void few_rows_layer(const AffineProduct& x, Device& device) {
  if (x.m() > 0 && x.n() > 0) few_rows_with(product_of<S>(x), biased_of<S>(x), device);
}
template <class S>
Kernel few_rows_stored(std::string_view id, std::string_view summary = kFewRows) {
  return for_few_rows<S>(composed_kernel<LinearArgs, &linear_by<&few_rows_layer<S>>, 16, S>(id, summary));
}
const KernelRegistration stored[] = {
    KernelRegistration(naive16_stored<Half>("linear/" ASSAY_CUDA_NAME "/naive16_f16")),
    KernelRegistration(naive16_stored<BFloat16>("linear/" ASSAY_CUDA_NAME "/naive16_bf16")),
    KernelRegistration(mma<Half>("linear/" ASSAY_CUDA_NAME "/mma_f16")),
    KernelRegistration(mma<BFloat16>("linear/" ASSAY_CUDA_NAME "/mma_bf16")),
    KernelRegistration(wgmma<Half>("linear/" ASSAY_CUDA_NAME "/wgmma_f16")),
    KernelRegistration(wgmma<BFloat16>("linear/" ASSAY_CUDA_NAME "/wgmma_bf16")),
    KernelRegistration(few_rows_stored<Half>("linear/" ASSAY_CUDA_NAME "/few_rows_f16")),
    KernelRegistration(few_rows_stored<BFloat16>("linear/" ASSAY_CUDA_NAME "/few_rows_bf16")),
    KernelRegistration(few_rows_stored<float>("linear/" ASSAY_CUDA_NAME "/few_rows_tf32x3", kFewRowsTf32x3)),
    KernelRegistration(
        declaring(kWgmmaTf32Arithmetic, wgmma<float>("linear/" ASSAY_CUDA_NAME "/wgmma_tf32", kWgmmaTf32))),
    KernelRegistration(wgmma<float, true>("linear/" ASSAY_CUDA_NAME "/wgmma_tf32x3", kWgmmaTf32x3))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_linear
