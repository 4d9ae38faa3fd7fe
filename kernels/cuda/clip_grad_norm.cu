// Clipping of gradients by their global norm with CUDA.
#include "kernels/cuda/grad_norm.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_clip_grad_norm {
namespace {

const KernelRegistration two_stages_row{clip_row<>("clip_grad_norm/" ASSAY_CUDA_NAME "/two_stages")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_clip_grad_norm
