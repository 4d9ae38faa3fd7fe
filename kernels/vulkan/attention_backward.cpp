// Gradients of attention: launches attention_backward_rows.comp, attention_backward.comp and
// attention_backward_kv.comp.
#include "kernels/vulkan/attention_backward.hpp"

namespace assay::vulkan::of_attention_backward {
namespace {

const KernelRegistration tiled{preferred(attention_backward_tiled<>("attention_backward/vulkan/tiled"))};

}  // namespace
}  // namespace assay::vulkan::of_attention_backward
