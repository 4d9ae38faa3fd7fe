// Gradient of the weighted cross-entropy: launches cross_entropy_backward.comp. dlogits shares no memory with an input.
#include "kernels/vulkan/cross_entropy_backward.hpp"

#include "shaders/cross_entropy_backward.hpp"

namespace assay::vulkan::of_cross_entropy_backward {
namespace {

const KernelRegistration four_per_invocation{cross_entropy_backward_kernel<shaders::cross_entropy_backward>(
    "cross_entropy_backward/vulkan/four_per_invocation")};

}  // namespace
}  // namespace assay::vulkan::of_cross_entropy_backward
