// dx = dy and dbias = sums of the columns of dy with CUDA.
#include "kernels/cuda/bias_add_backward.cuh"

#include "kernels/cuda/elementwise.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add_backward {
namespace {

const KernelRegistration stripes_row{map_kernel_row<ops::BiasAddBackwardArgs, &bias_add_backward<>>(
    "bias_add_backward", "bias_add_backward/" ASSAY_CUDA_NAME "/stripes", "kernels/cuda/bias_add_backward.cuh",
    "a block per tile of columns, stripes of rows added in a fixed order")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_bias_add_backward
