// absmax = code[q]·absmax2 + offset with CUDA.
#include "kernels/cuda/nf4_absmax_dequantize.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_absmax_dequantize {
namespace {

const KernelRegistration elementwise_row{absmax_dequantize_kernel<&absmax_elementwise<>>(
    "nf4_absmax_dequantize/" ASSAY_CUDA_NAME "/elementwise", "one thread an element, its entry computed")};
const KernelRegistration vectors_row{preferred(absmax_dequantize_kernel<&absmax_vectors<>>(
    "nf4_absmax_dequantize/" ASSAY_CUDA_NAME "/vectors", "four elements a thread, the codebook in shared memory"))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_absmax_dequantize
