// Attention of one position against a cache: launches attention_decode.comp.
#include "kernels/vulkan/attention_decode.hpp"

#include "shaders/attention_decode_tiles.hpp"

namespace assay::vulkan::of_attention_decode {
namespace {

const KernelRegistration tiles_kernel{attention_decode_row<shaders::attention_decode_tiles>("attention_decode/vulkan/tiles")};

}  // namespace
}  // namespace assay::vulkan::of_attention_decode
