// Binary cross-entropy: launches bce_with_logits.comp. loss shares no memory with an input.
#include "kernels/vulkan/bce_with_logits.hpp"

#include "shaders/bce_with_logits.hpp"

namespace assay::vulkan::of_bce_with_logits {
namespace {

const KernelRegistration workgroup_per_row{
    bce_kernel<shaders::bce_with_logits>("bce_with_logits/vulkan/workgroup_per_row")};

}  // namespace
}  // namespace assay::vulkan::of_bce_with_logits
