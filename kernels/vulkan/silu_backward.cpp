// dx = dy times the slope of x sigmoid(x): launches silu_backward.comp. dx shares no memory with x or dy (the
// contract's clause).
#include "kernels/vulkan/silu_backward.hpp"

#include "shaders/silu_backward_vectors.hpp"

namespace assay::vulkan::of_silu_backward {
namespace {

const KernelRegistration vectors_row{silu_backward_row<shaders::silu_backward_vectors>(
    "silu_backward/vulkan/vectors", "kernels/vulkan/silu_backward.comp",
    "one pass, 16 bytes an invocation where rows are aligned")};

}  // namespace
}  // namespace assay::vulkan::of_silu_backward
