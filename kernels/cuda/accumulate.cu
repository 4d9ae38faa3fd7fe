// dst = dst + alpha src with CUDA.
#include "kernels/cuda/accumulate.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_accumulate {
namespace {

const KernelRegistration vectors_row{map_kernel_row<ops::AccumulateArgs, &accumulate<>>(
    "accumulate", "accumulate/" ASSAY_CUDA_NAME "/vectors", "kernels/cuda/accumulate.cuh",
    "one pass, 16 bytes a thread where rows are aligned")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_accumulate
