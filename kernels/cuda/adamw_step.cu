// One step of AdamW with CUDA.
#include "kernels/cuda/adamw_step.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {
namespace {

const KernelRegistration four_per_thread_row{adamw_row<>("adamw_step/" ASSAY_CUDA_NAME "/four_per_thread")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE
