// Euclidean norm of a gradient with CUDA.
#include "kernels/cuda/grad_norm.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_global_grad_norm {
namespace {

const KernelRegistration two_stages_row{norm_row<>("global_grad_norm/" ASSAY_CUDA_NAME "/two_stages")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_global_grad_norm
