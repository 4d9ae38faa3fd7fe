// Binary cross-entropy of logits with CUDA.
#include "kernels/cuda/bce_with_logits.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bce_with_logits {
namespace {

const KernelRegistration block_per_row_row{bce_kernel<>("bce_with_logits/" ASSAY_CUDA_NAME "/block_per_row")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bce_with_logits
