// Gradient of softmax with CUDA.
#include "kernels/cuda/softmax_backward.cuh"
#include "ops/softmax_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax_backward {
namespace {

const KernelRegistration rows_kernel{
    softmax_backward_row<ops::SoftmaxBackwardArgs>("softmax_backward/" ASSAY_CUDA_NAME "/rows")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax_backward
