// The mean of the first tokens of each sequence with CUDA.
#include "kernels/cuda/mean_pool.cuh"

#include "kernels/cuda/elementwise.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool {
namespace {

const KernelRegistration stripes_row{map_kernel_row<ops::MeanPoolArgs, &mean_pool<>>(
    "mean_pool", "mean_pool/" ASSAY_CUDA_NAME "/stripes", "kernels/cuda/mean_pool.cuh",
    "a block per sequence and tile of columns, stripes of tokens added in a fixed order")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_mean_pool
