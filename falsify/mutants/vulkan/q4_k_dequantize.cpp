// Wrong values of Q4_K super-blocks: q4_k_dequantize.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/q4_k_dequantize.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "shaders/mutant_q4_k_dequantize_first_row_only.hpp"
#include "shaders/mutant_q4_k_dequantize_high_scales_short.hpp"
#include "shaders/mutant_q4_k_dequantize_last_block_dropped.hpp"
#include "shaders/mutant_q4_k_dequantize_nibbles_interleaved.hpp"
#include "shaders/mutant_q4_k_dequantize_rows_joined.hpp"
#include "shaders/mutant_q4_k_dequantize_subnormals_halved.hpp"

namespace assay::falsify::q4_k_dequantize_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::q4k_dequantize_row<shader>("", "falsify/mutants/vulkan/q4_k_dequantize.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    wrong<shaders::mutant_q4_k_dequantize_nibbles_interleaved>("mutant/vulkan/q4_k_dequantize/nibbles_interleaved",
                                                               "the two nibbles of a byte are neighbours (bug 84)"),
    wrong<shaders::mutant_q4_k_dequantize_high_scales_short>(
        "mutant/vulkan/q4_k_dequantize/high_scales_short", "scales of sub-blocks 4 to 7 lack their upper two bits (bug 85)"),
    wrong<shaders::mutant_q4_k_dequantize_subnormals_halved>("mutant/vulkan/q4_k_dequantize/subnormals_halved",
                                                             "subnormal d and dmin come out halved (bug 87)"),
    wrong<shaders::mutant_q4_k_dequantize_last_block_dropped>("mutant/vulkan/q4_k_dequantize/last_block_dropped",
                                                              "floor instead of ceiling of k / 256 (bug 8)"),
    wrong<shaders::mutant_q4_k_dequantize_rows_joined>(
        "mutant/vulkan/q4_k_dequantize/rows_joined", "a ragged row starts in the last super-block of the row before (bug 7)"),
    wrong<shaders::mutant_q4_k_dequantize_first_row_only>("mutant/vulkan/q4_k_dequantize/first_row_only",
                                                          "one row is launched for a batch (bug 43)"),
};

}  // namespace
}  // namespace assay::falsify::q4_k_dequantize_mutants
