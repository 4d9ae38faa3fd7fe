// Values of Q4_K super-blocks: launches q4_k_dequantize.comp. y shares no memory with blocks (the contract's clause). Every
// bit is determined.
#include "kernels/vulkan/q4_k_dequantize.hpp"

#include "shaders/q4_k_dequantize_words.hpp"

namespace assay::vulkan::of_q4_k_dequantize {
namespace {

const KernelRegistration words_row{q4k_dequantize_row<shaders::q4_k_dequantize_words>(
    "q4_k_dequantize/vulkan/words", "kernels/vulkan/q4_k_dequantize.comp", "an invocation per word of codes, eight values")};

}  // namespace
}  // namespace assay::vulkan::of_q4_k_dequantize
