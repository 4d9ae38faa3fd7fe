// dst = srcᵀ with CUDA.
#include "kernels/cuda/copies.cuh"
#include "ops/transpose.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_transpose {
namespace {

using ops::TransposeArgs;

const KernelRegistration elementwise_copy{copy_kernel<TransposeArgs, true, false, &elementwise>(
    "transpose/" ASSAY_CUDA_NAME "/elementwise", "one thread an element, along rows of src")};
const KernelRegistration tiled32_copy{copy_kernel<TransposeArgs, true, true, &tiled32>(
    "transpose/" ASSAY_CUDA_NAME "/tiled32", "32x32 tiles through shared memory")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_transpose
