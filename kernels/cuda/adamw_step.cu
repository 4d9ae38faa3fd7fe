// One step of AdamW with CUDA.
#include "kernels/cuda/adamw_step.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_adamw_step {
namespace {

const KernelRegistration four_per_thread_row{adamw_row<>("adamw_step/" ASSAY_CUDA_NAME "/four_per_thread")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_adamw_step
