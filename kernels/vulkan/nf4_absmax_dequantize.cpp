// absmax = code[q] absmax2 + offset: launches nf4_absmax_dequantize.comp or its naive neighbour. absmax shares no
// memory with the inputs, and those are dense (the contract's clauses).
#include "kernels/vulkan/nf4_absmax_dequantize.hpp"

#include "shaders/nf4_absmax_dequantize_naive.hpp"
#include "shaders/nf4_absmax_dequantize_words.hpp"

namespace assay::vulkan::of_nf4_absmax_dequantize {
namespace {

const KernelRegistration naive{nf4_absmax_dequantize_row<shaders::nf4_absmax_dequantize_naive, 64>(
    "nf4_absmax_dequantize/vulkan/naive", "kernels/vulkan/nf4_absmax_dequantize_naive.comp",
    "one invocation an element")};
const KernelRegistration words{preferred(nf4_absmax_dequantize_row<shaders::nf4_absmax_dequantize_words, 1024>(
    "nf4_absmax_dequantize/vulkan/words", "kernels/vulkan/nf4_absmax_dequantize.comp",
    "a word of codes, four elements, per invocation; the codebook in shared memory"))};

}  // namespace
}  // namespace assay::vulkan::of_nf4_absmax_dequantize
