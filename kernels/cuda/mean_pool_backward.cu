// The gradient of the mean of the first tokens of each sequence with CUDA.
#include "kernels/cuda/mean_pool_backward.cuh"

#include "kernels/cuda/elementwise.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool_backward {
namespace {

const KernelRegistration rows_row{map_kernel_row<ops::MeanPoolBackwardArgs, &mean_pool_backward<>>(
    "mean_pool_backward", "mean_pool_backward/" ASSAY_CUDA_NAME "/rows", "kernels/cuda/mean_pool_backward.cuh",
    "a thread per four columns, one division for its rows")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool_backward
