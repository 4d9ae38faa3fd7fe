// Gradient of the binary cross-entropy: launches bce_with_logits_backward.comp. dlogits shares no memory with an input.
#include "kernels/vulkan/bce_with_logits_backward.hpp"

#include "shaders/bce_with_logits_backward.hpp"

namespace assay::vulkan::of_bce_with_logits_backward {
namespace {

const KernelRegistration elementwise{
    bce_backward_kernel<shaders::bce_with_logits_backward>("bce_with_logits_backward/vulkan/elementwise")};

}  // namespace
}  // namespace assay::vulkan::of_bce_with_logits_backward
