// Q4_K super-blocks of values: launches q4_k_quantize.comp. blocks shares no memory with x (the contract's clause). Every
// bit is determined: no result depends on how a quotient was rounded.
#include "kernels/vulkan/q4_k_quantize.hpp"

#include "shaders/q4_k_quantize_cooperative.hpp"

namespace assay::vulkan::of_q4_k_quantize {
namespace {

const KernelRegistration cooperative_row{
    q4k_quantize_row<shaders::q4_k_quantize_cooperative>("q4_k_quantize/vulkan/cooperative", "kernels/vulkan/q4_k_quantize.comp",
                                                         "32 invocations per super-block, eight values each")};

}  // namespace
}  // namespace assay::vulkan::of_q4_k_quantize
