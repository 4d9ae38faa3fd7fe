// Gradient of the binary cross-entropy with CUDA.
#include "kernels/cuda/bce_with_logits_backward.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bce_with_logits_backward {
namespace {

const KernelRegistration four_per_thread_row{
    bce_backward_row<>("bce_with_logits_backward/" ASSAY_CUDA_NAME "/four_per_thread")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bce_with_logits_backward
