// The gradient of rows of a table by index with CUDA.
#include "kernels/cuda/embedding_backward.cuh"

#include "kernels/cuda/elementwise.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding_backward {
namespace {

const KernelRegistration first_of_id_row{map_kernel_row<ops::EmbeddingBackwardArgs, &embedding_backward<>>(
    "embedding_backward", "embedding_backward/" ASSAY_CUDA_NAME "/first_of_id", "kernels/cuda/embedding_backward.cuh",
    "the first token of an id sums them all in order, 32 ids compared at a time; no atomics")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding_backward
