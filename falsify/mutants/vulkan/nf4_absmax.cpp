// Wrong codecs of double quantization: their shaders compiled with a FAULT_* macro.
#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "kernels/vulkan/nf4_absmax_dequantize.hpp"
#include "kernels/vulkan/nf4_absmax_quantize.hpp"
#include "shaders/mutant_nf4_absmax_dequantize_dense_assumed.hpp"
#include "shaders/mutant_nf4_absmax_dequantize_group_of_64.hpp"
#include "shaders/mutant_nf4_absmax_dequantize_groups_per_row.hpp"
#include "shaders/mutant_nf4_absmax_dequantize_no_barrier.hpp"
#include "shaders/mutant_nf4_absmax_dequantize_offset_left_out.hpp"
#include "shaders/mutant_nf4_absmax_dequantize_table_off_by_one.hpp"
#include "shaders/mutant_nf4_absmax_dequantize_unsigned_map.hpp"
#include "shaders/mutant_nf4_absmax_dequantize_whole_words.hpp"
#include "shaders/mutant_nf4_absmax_quantize_garbage_in_tail.hpp"
#include "shaders/mutant_nf4_absmax_quantize_groups_per_row.hpp"
#include "shaders/mutant_nf4_absmax_quantize_last_partials_lost.hpp"
#include "shaders/mutant_nf4_absmax_quantize_no_barrier.hpp"
#include "shaders/mutant_nf4_absmax_quantize_offset_not_subtracted.hpp"
#include "shaders/mutant_nf4_absmax_quantize_sum_dense_assumed.hpp"
#include "shaders/mutant_nf4_absmax_quantize_sum_last_partials_lost.hpp"
#include "shaders/mutant_nf4_absmax_quantize_sum_negative_kept.hpp"
#include "shaders/mutant_nf4_absmax_quantize_sum_no_barrier.hpp"
#include "shaders/mutant_nf4_absmax_quantize_table_off_by_one.hpp"
#include "shaders/mutant_nf4_absmax_quantize_tie_goes_up.hpp"
#include "shaders/mutant_nf4_absmax_quantize_unsigned_map.hpp"
#include "shaders/nf4_absmax_quantize_groups.hpp"
#include "shaders/nf4_absmax_quantize_sum.hpp"

namespace assay::falsify::nf4_absmax_mutants {
namespace {

namespace shaders = vulkan::shaders;
using vulkan::Shader;
constexpr std::string_view kSource = "falsify/mutants/vulkan/nf4_absmax.cpp";

template <const Shader& shader>
KernelRegistration decoder(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::nf4_absmax_dequantize_row<shader, 1024>("", kSource, ""), id, fault);
}
template <const Shader& shader, const Shader& sum = shaders::nf4_absmax_quantize_sum>
KernelRegistration encoder(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::nf4_absmax_quantize_row<sum, shader, 1>("", kSource, ""), id, fault);
}
template <const Shader& sum>
KernelRegistration adder(std::string_view id, std::string_view fault) {
  return encoder<shaders::nf4_absmax_quantize_groups, sum>(id, fault);
}

const KernelRegistration registrations[] = {
    decoder<shaders::mutant_nf4_absmax_dequantize_dense_assumed>(
        "mutant/vulkan/nf4_absmax_dequantize/dense_assumed", "BUG 39: rows of absmax are taken to follow each other"),
    decoder<shaders::mutant_nf4_absmax_dequantize_group_of_64>("mutant/vulkan/nf4_absmax_dequantize/group_of_64",
                                                               "BUG 86: a scale for 64 elements"),
    decoder<shaders::mutant_nf4_absmax_dequantize_groups_per_row>("mutant/vulkan/nf4_absmax_dequantize/groups_per_row",
                                                                  "BUG 7: every row begins a group"),
    decoder<shaders::mutant_nf4_absmax_dequantize_no_barrier>("mutant/vulkan/nf4_absmax_dequantize/no_barrier",
                                                              "BUG 28: no barrier before the codebook is read"),
    decoder<shaders::mutant_nf4_absmax_dequantize_offset_left_out>(
        "mutant/vulkan/nf4_absmax_dequantize/offset_left_out", "offset is not added"),
    decoder<shaders::mutant_nf4_absmax_dequantize_table_off_by_one>(
        "mutant/vulkan/nf4_absmax_dequantize/table_off_by_one", "entry q + 1"),
    decoder<shaders::mutant_nf4_absmax_dequantize_unsigned_map>("mutant/vulkan/nf4_absmax_dequantize/unsigned_map",
                                                                "q / 255: a map without a sign"),
    decoder<shaders::mutant_nf4_absmax_dequantize_whole_words>("mutant/vulkan/nf4_absmax_dequantize/whole_words",
                                                               "BUG 16: all four elements of the last word are stored"),
    encoder<shaders::mutant_nf4_absmax_quantize_garbage_in_tail>(
        "mutant/vulkan/nf4_absmax_quantize/garbage_in_tail", "a ragged group's maximum counts zeros behind its end"),
    encoder<shaders::mutant_nf4_absmax_quantize_groups_per_row>(
        "mutant/vulkan/nf4_absmax_quantize/groups_per_row",
        "BUG 7: a group's maximum ends with the row in which it begins"),
    encoder<shaders::mutant_nf4_absmax_quantize_last_partials_lost>(
        "mutant/vulkan/nf4_absmax_quantize/last_partials_lost", "BUG 44: the maximum leaves out its last step"),
    encoder<shaders::mutant_nf4_absmax_quantize_no_barrier>("mutant/vulkan/nf4_absmax_quantize/no_barrier",
                                                            "BUG 28: no barrier before the maxima of others are read"),
    encoder<shaders::mutant_nf4_absmax_quantize_offset_not_subtracted>(
        "mutant/vulkan/nf4_absmax_quantize/offset_not_subtracted", "codes are of absmax, not of absmax - offset"),
    encoder<shaders::mutant_nf4_absmax_quantize_table_off_by_one>("mutant/vulkan/nf4_absmax_quantize/table_off_by_one",
                                                                  "midpoint m + 1 for m"),
    encoder<shaders::mutant_nf4_absmax_quantize_tie_goes_up>("mutant/vulkan/nf4_absmax_quantize/tie_goes_up",
                                                             "a tie takes the upper code"),
    encoder<shaders::mutant_nf4_absmax_quantize_unsigned_map>("mutant/vulkan/nf4_absmax_quantize/unsigned_map",
                                                              "midpoints of q / 255: a map without a sign"),
    adder<shaders::mutant_nf4_absmax_quantize_sum_dense_assumed>(
        "mutant/vulkan/nf4_absmax_quantize/sum_dense_assumed",
        "BUG 39: the sum takes rows of absmax to follow each other"),
    adder<shaders::mutant_nf4_absmax_quantize_sum_last_partials_lost>(
        "mutant/vulkan/nf4_absmax_quantize/sum_last_partials_lost", "BUG 44: the sum leaves out its last step"),
    adder<shaders::mutant_nf4_absmax_quantize_sum_negative_kept>("mutant/vulkan/nf4_absmax_quantize/sum_negative_kept",
                                                                 "negative values are added like others"),
    adder<shaders::mutant_nf4_absmax_quantize_sum_no_barrier>("mutant/vulkan/nf4_absmax_quantize/sum_no_barrier",
                                                              "BUG 28: no barrier before the terms of others are read"),
};

}  // namespace
}  // namespace assay::falsify::nf4_absmax_mutants
