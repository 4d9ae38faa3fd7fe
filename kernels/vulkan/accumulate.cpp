// dst += alpha src: launches accumulate.comp. dst shares no memory with src (the contract's clause). Two roundings at
// most.
#include "kernels/vulkan/accumulate.hpp"

#include "shaders/accumulate_vectors.hpp"

namespace assay::vulkan::of_accumulate {
namespace {

const KernelRegistration vectors_row{
    accumulate_row<shaders::accumulate_vectors>("accumulate/vulkan/vectors", "kernels/vulkan/accumulate.comp",
                                                "one pass, 16 bytes an invocation where rows are aligned")};

}  // namespace
}  // namespace assay::vulkan::of_accumulate
