// Wrong Q4_K super-blocks: q4_k_quantize.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/q4_k_quantize.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "shaders/mutant_q4_k_quantize_codes_uncorrected.hpp"
#include "shaders/mutant_q4_k_quantize_first_row_only.hpp"
#include "shaders/mutant_q4_k_quantize_halves_cut.hpp"
#include "shaders/mutant_q4_k_quantize_high_scales_short.hpp"
#include "shaders/mutant_q4_k_quantize_last_block_dropped.hpp"
#include "shaders/mutant_q4_k_quantize_nan_swallowed.hpp"
#include "shaders/mutant_q4_k_quantize_no_barrier.hpp"
#include "shaders/mutant_q4_k_quantize_padding_counted.hpp"

namespace assay::falsify::q4_k_quantize_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::q4k_quantize_row<shader>("", "falsify/mutants/vulkan/q4_k_quantize.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    wrong<shaders::mutant_q4_k_quantize_codes_uncorrected>("mutant/vulkan/q4_k_quantize/codes_uncorrected",
                                                           "codes as the device's division gives them: ties go up"),
    wrong<shaders::mutant_q4_k_quantize_halves_cut>("mutant/vulkan/q4_k_quantize/halves_cut",
                                                    "d and dmin cut to binary16 (bug 87)"),
    wrong<shaders::mutant_q4_k_quantize_high_scales_short>(
        "mutant/vulkan/q4_k_quantize/high_scales_short", "scales of sub-blocks 4 to 7 lack their upper two bits (bug 85)"),
    wrong<shaders::mutant_q4_k_quantize_last_block_dropped>("mutant/vulkan/q4_k_quantize/last_block_dropped",
                                                            "floor instead of ceiling of k / 256 (bug 8)"),
    wrong<shaders::mutant_q4_k_quantize_first_row_only>("mutant/vulkan/q4_k_quantize/first_row_only",
                                                        "one row is launched for a batch (bug 43)"),
    wrong<shaders::mutant_q4_k_quantize_padding_counted>("mutant/vulkan/q4_k_quantize/padding_counted",
                                                         "zeros behind a row count as values (bug 7)"),
    wrong<shaders::mutant_q4_k_quantize_nan_swallowed>("mutant/vulkan/q4_k_quantize/nan_swallowed",
                                                       "minimum and maximum pass over NaN"),
    wrong<shaders::mutant_q4_k_quantize_no_barrier>("mutant/vulkan/q4_k_quantize/no_barrier",
                                                    "minima are read before all are stored (bug 28)"),
};

}  // namespace
}  // namespace assay::falsify::q4_k_quantize_mutants
