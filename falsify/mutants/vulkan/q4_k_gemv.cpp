// Wrong y = W·x for W in Q4_K super-blocks: q4_k_gemv.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/q4_k_gemv.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "shaders/mutant_q4_k_gemv_first_rows_only.hpp"
#include "shaders/mutant_q4_k_gemv_high_scales_short.hpp"
#include "shaders/mutant_q4_k_gemv_last_block_dropped.hpp"
#include "shaders/mutant_q4_k_gemv_last_partials_lost.hpp"
#include "shaders/mutant_q4_k_gemv_nibbles_swapped.hpp"
#include "shaders/mutant_q4_k_gemv_no_barrier.hpp"
#include "shaders/mutant_q4_k_gemv_rows_joined.hpp"
#include "shaders/mutant_q4_k_gemv_subnormals_halved.hpp"

namespace assay::falsify::q4_k_gemv_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::q4k_gemv_row<shader>("", "falsify/mutants/vulkan/q4_k_gemv.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    wrong<shaders::mutant_q4_k_gemv_nibbles_swapped>("mutant/vulkan/q4_k_gemv/nibbles_swapped", "high nibbles first (bug 84)"),
    wrong<shaders::mutant_q4_k_gemv_high_scales_short>(
        "mutant/vulkan/q4_k_gemv/high_scales_short", "scales of sub-blocks 4 to 7 lack their upper two bits (bug 85)"),
    wrong<shaders::mutant_q4_k_gemv_subnormals_halved>("mutant/vulkan/q4_k_gemv/subnormals_halved",
                                                       "subnormal d and dmin come out halved (bug 87)"),
    wrong<shaders::mutant_q4_k_gemv_last_block_dropped>("mutant/vulkan/q4_k_gemv/last_block_dropped",
                                                        "floor instead of ceiling of k / 256 (bug 8)"),
    wrong<shaders::mutant_q4_k_gemv_rows_joined>(
        "mutant/vulkan/q4_k_gemv/rows_joined", "a ragged row starts in the last super-block of the row before (bug 7)"),
    wrong<shaders::mutant_q4_k_gemv_first_rows_only>("mutant/vulkan/q4_k_gemv/first_rows_only",
                                                     "one workgroup of rows is launched for a batch (bug 43)"),
    wrong<shaders::mutant_q4_k_gemv_last_partials_lost>("mutant/vulkan/q4_k_gemv/last_partials_lost",
                                                        "the reduction stops before its last step (bug 44)"),
    wrong<shaders::mutant_q4_k_gemv_no_barrier>("mutant/vulkan/q4_k_gemv/no_barrier",
                                                "partial sums are read before all are stored (bug 28)"),
};

}  // namespace
}  // namespace assay::falsify::q4_k_gemv_mutants
