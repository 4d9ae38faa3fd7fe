// dst = src between two strided layouts, with CUDA.
#include "kernels/cuda/copies.cuh"
#include "ops/tensor_layout.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_tensor_layout {
namespace {

using ops::TensorLayoutArgs;

const KernelRegistration elementwise_copy{copy_kernel<TensorLayoutArgs, false, false, &elementwise>(
    "tensor_layout/" ASSAY_CUDA_NAME "/elementwise", "one thread an element, along rows of src")};
const KernelRegistration tiled32_copy{copy_kernel<TensorLayoutArgs, false, true, &tiled32>(
    "tensor_layout/" ASSAY_CUDA_NAME "/tiled32", "32x32 tiles through shared memory")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_tensor_layout
