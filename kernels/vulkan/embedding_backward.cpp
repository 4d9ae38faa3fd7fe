// The gradient of an embedding table: launches embedding_backward.comp twice. dtable shares no memory with ids or dy
// (the contract's clause). Error: as many terms as an id has tokens, in their order, and the flushed subnormals.
#include "kernels/vulkan/embedding_backward.hpp"

#include "shaders/embedding_backward_first_of_id.hpp"

namespace assay::vulkan::of_embedding_backward {
namespace {

const KernelRegistration first_of_id_row{embedding_backward_row<shaders::embedding_backward_first_of_id>(
    "embedding_backward/vulkan/first_of_id", "kernels/vulkan/embedding_backward.comp",
    "the first token of an id sums them all in order; no atomics")};

}  // namespace
}  // namespace assay::vulkan::of_embedding_backward
