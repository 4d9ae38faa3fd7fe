// Wrong codecs of NF4: their shaders compiled with a FAULT_* macro.
#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "kernels/vulkan/nf4_dequantize.hpp"
#include "kernels/vulkan/nf4_quantize.hpp"
#include "shaders/mutant_nf4_dequantize_blocks_over_rows.hpp"
#include "shaders/mutant_nf4_dequantize_nibbles_swapped.hpp"
#include "shaders/mutant_nf4_dequantize_whole_words.hpp"
#include "shaders/mutant_nf4_quantize_last_partials_lost.hpp"
#include "shaders/mutant_nf4_quantize_nibbles_swapped.hpp"
#include "shaders/mutant_nf4_quantize_tie_goes_up.hpp"
#include "shaders/mutant_nf4_quantize_zero_block_unchecked.hpp"

namespace assay::falsify {
namespace {

namespace shaders = vulkan::shaders;
constexpr std::string_view kSource = "falsify/mutants/vulkan/nf4.cpp";

template <const vulkan::Shader& shader>
KernelRegistration decoder(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::nf4_dequantize_row<shader>("", kSource, ""), id, fault);
}
template <const vulkan::Shader& shader>
KernelRegistration encoder(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::nf4_quantize_row<shader>("", kSource, ""), id, fault);
}

const KernelRegistration registrations[] = {
    decoder<shaders::mutant_nf4_dequantize_nibbles_swapped>("mutant/vulkan/nf4_dequantize/nibbles_swapped",
                                                            "BUG 83: the earlier element in the low bits"),
    decoder<shaders::mutant_nf4_dequantize_blocks_over_rows>("mutant/vulkan/nf4_dequantize/blocks_over_rows",
                                                             "BUG 7: blocks counted over rows"),
    decoder<shaders::mutant_nf4_dequantize_whole_words>("mutant/vulkan/nf4_dequantize/whole_words",
                                                        "BUG 16: all eight elements of the last word are stored"),
    encoder<shaders::mutant_nf4_quantize_nibbles_swapped>("mutant/vulkan/nf4_quantize/nibbles_swapped",
                                                          "BUG 83: the earlier element in the low bits"),
    encoder<shaders::mutant_nf4_quantize_tie_goes_up>("mutant/vulkan/nf4_quantize/tie_goes_up", "a tie takes the upper code"),
    encoder<shaders::mutant_nf4_quantize_zero_block_unchecked>("mutant/vulkan/nf4_quantize/zero_block_unchecked",
                                                               "a block of zeros is compared with limits of 0"),
    encoder<shaders::mutant_nf4_quantize_last_partials_lost>("mutant/vulkan/nf4_quantize/last_partials_lost",
                                                             "BUG 44: the maximum leaves out the last eight elements"),
};

}  // namespace
}  // namespace assay::falsify
