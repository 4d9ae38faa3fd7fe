// y = code[q]·absmax with CUDA.
#include "kernels/cuda/nf4_dequantize.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_dequantize {
namespace {

const KernelRegistration elementwise_row{nf4_dequantize_kernel<&nf4_elementwise<>>(
    "nf4_dequantize/" ASSAY_CUDA_NAME "/elementwise", "one thread an element")};
const KernelRegistration vectors_row{preferred(nf4_dequantize_kernel<&nf4_vectors<>>(
    "nf4_dequantize/" ASSAY_CUDA_NAME "/vectors", "four elements a thread, the codebook in shared memory"))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_dequantize
