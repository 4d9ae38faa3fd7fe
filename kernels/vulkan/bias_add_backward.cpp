// The gradients of y = x + bias: launches bias_add_backward.comp. Nothing shares memory (the contract's clause).
// Error: m terms in a fixed order, at most m*u*sum|dy| and the flushed subnormals. m = 0 writes zeros.
#include "kernels/vulkan/bias_add_backward.hpp"

#include "shaders/bias_add_backward_stripes.hpp"

namespace assay::vulkan::of_bias_add_backward {
namespace {

const KernelRegistration stripes_row{bias_add_backward_row<shaders::bias_add_backward_stripes>(
    "bias_add_backward/vulkan/stripes", "kernels/vulkan/bias_add_backward.comp",
    "32 columns per workgroup, eight stripes of rows added in order")};

}  // namespace
}  // namespace assay::vulkan::of_bias_add_backward
