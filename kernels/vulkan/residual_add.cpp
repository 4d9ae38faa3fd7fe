// y = x + alpha r: launches residual_add.comp. y shares no memory with x or r (the contract's clause). Two roundings at
// most.
#include "kernels/vulkan/residual_add.hpp"

#include "shaders/residual_add_vectors.hpp"

namespace assay::vulkan::of_residual_add {
namespace {

const KernelRegistration vectors_row{
    residual_add_row<shaders::residual_add_vectors>("residual_add/vulkan/vectors", "kernels/vulkan/residual_add.comp",
                                                    "one pass, 16 bytes an invocation where rows are aligned")};

}  // namespace
}  // namespace assay::vulkan::of_residual_add
