// y = x + bias for every row with CUDA.
#include "kernels/cuda/bias_add.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add {
namespace {

const KernelRegistration vectors_row{map_kernel_row<ops::BiasAddArgs, &bias_add<>>(
    "bias_add", "bias_add/" ASSAY_CUDA_NAME "/vectors", "kernels/cuda/bias_add.cuh",
    "one pass, 16 bytes a thread where rows are aligned")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add
