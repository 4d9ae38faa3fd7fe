// Gradient of the weighted cross-entropy with CUDA.
#include "kernels/cuda/cross_entropy_backward.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy_backward {
namespace {

const KernelRegistration four_per_thread_row{
    cross_entropy_backward_row<>("cross_entropy_backward/" ASSAY_CUDA_NAME "/four_per_thread")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy_backward
