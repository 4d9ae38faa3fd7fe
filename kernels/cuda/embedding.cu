// Rows of a table by index with CUDA.
#include "kernels/cuda/embedding.cuh"

#include "kernels/cuda/elementwise.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding {
namespace {

const KernelRegistration vectors_row{map_kernel_row<ops::EmbeddingArgs, &embedding<>>(
    "embedding", "embedding/" ASSAY_CUDA_NAME "/vectors", "kernels/cuda/embedding.cuh",
    "a thread per 16 bytes where rows are aligned")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding
