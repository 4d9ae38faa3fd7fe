// Rows of a table by index: launches embedding.comp. y shares no memory with ids or table (the contract's clause).
// Every bit is kept.
#include "kernels/vulkan/embedding.hpp"

#include "shaders/embedding_vectors.hpp"

namespace assay::vulkan::of_embedding {
namespace {

const KernelRegistration vectors_row{embedding_row<shaders::embedding_vectors>(
    "embedding/vulkan/vectors", "kernels/vulkan/embedding.comp", "four columns per invocation where rows are aligned")};

}  // namespace
}  // namespace assay::vulkan::of_embedding
