// y = x sigmoid(x) with CUDA.
#include "kernels/cuda/silu.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu {
namespace {

const KernelRegistration vectors_row{map_kernel_row<ops::SiluArgs, &silu<>>("silu", "silu/" ASSAY_CUDA_NAME "/vectors",
    "kernels/cuda/silu.cuh", "one pass, 16 bytes a thread where rows are aligned")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu
