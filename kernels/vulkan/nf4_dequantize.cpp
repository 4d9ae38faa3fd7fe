// y = code[q] absmax: launches nf4_dequantize.comp. y shares no memory with codes or absmax, and rows of codes begin at
// multiples of 4 bytes (the contract's clauses). Products are 0 or normal: bits are the contract's.
#include "kernels/vulkan/nf4_dequantize.hpp"

#include "shaders/nf4_dequantize_words.hpp"

namespace assay::vulkan::of_nf4_dequantize {
namespace {

const KernelRegistration words{nf4_dequantize_row<shaders::nf4_dequantize_words>(
    "nf4_dequantize/vulkan/words", "kernels/vulkan/nf4_dequantize.comp", "a word of codes, eight columns, per invocation")};

}  // namespace
}  // namespace assay::vulkan::of_nf4_dequantize
