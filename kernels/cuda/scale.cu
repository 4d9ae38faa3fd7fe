// y = alpha x with CUDA.
#include "kernels/cuda/scale.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_scale {
namespace {

const KernelRegistration vectors_row{
    map_kernel_row<ops::ScaleArgs, &scale<>>("scale", "scale/" ASSAY_CUDA_NAME "/vectors", "kernels/cuda/scale.cuh",
                                             "one pass, 16 bytes a thread where rows are aligned")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_scale
