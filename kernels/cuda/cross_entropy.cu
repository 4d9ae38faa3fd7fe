// Weighted cross-entropy with CUDA.
#include "kernels/cuda/cross_entropy.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy {
namespace {

const KernelRegistration block_per_row_row{cross_entropy_kernel<>("cross_entropy/" ASSAY_CUDA_NAME "/block_per_row")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_cross_entropy
