// y = alpha x: launches scale.comp. y shares no memory with x (the contract's clause). One rounding.
#include "kernels/vulkan/scale.hpp"

#include "shaders/scale_vectors.hpp"

namespace assay::vulkan::of_scale {
namespace {

const KernelRegistration vectors_row{scale_row<shaders::scale_vectors>(
    "scale/vulkan/vectors", "kernels/vulkan/scale.comp", "one pass, 16 bytes an invocation where rows are aligned")};

}  // namespace
}  // namespace assay::vulkan::of_scale
