// q = the NF4 code of x / absmax: launches nf4_quantize.comp. Tensors share no memory, and rows of codes begin at multiples
// of 4 bytes (the contract's clauses). Scales are 0, NaN or large enough that no limit is subnormal: bits are the contract's.
#include "kernels/vulkan/nf4_quantize.hpp"

#include "shaders/nf4_quantize_words.hpp"

namespace assay::vulkan::of_nf4_quantize {
namespace {

const KernelRegistration words{nf4_quantize_row<shaders::nf4_quantize_words>(
    "nf4_quantize/vulkan/words", "kernels/vulkan/nf4_quantize.comp",
    "eight invocations a block, a word of codes each, the maximum in shared memory")};

}  // namespace
}  // namespace assay::vulkan::of_nf4_quantize
