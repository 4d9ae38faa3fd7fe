// y = x · Wᵀ + bias with CUDA: the kernels of naive16.cuh and register_tiled.cuh; the bias is added before the only
// store.
#include "kernels/cuda/affine_product.cuh"
#include "kernels/linear.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_linear {
namespace {

using ops::LinearArgs;

const KernelRegistration naive16{
    composed_kernel<LinearArgs, &linear_by<&multiply<Naive16>>>("linear/" ASSAY_CUDA_NAME "/naive16", kNaive16)};
const KernelRegistration register_tiled{
    preferred(composed_kernel<LinearArgs, &linear_by<&multiply<RegisterTiled>>, 128>(
        "linear/" ASSAY_CUDA_NAME "/register_tiled", kRegisterTiled))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_linear
