// Wrong attention against a cache: the right shader compiled with a FAULT_* macro, or launched wrongly.
#include "kernels/vulkan/attention_decode.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "shaders/attention_decode_tiles.hpp"
#include "shaders/mutant_attention_decode_first_head_appended.hpp"
#include "shaders/mutant_attention_decode_last_partials_lost.hpp"
#include "shaders/mutant_attention_decode_lengths_of_first.hpp"
#include "shaders/mutant_attention_decode_no_barrier.hpp"
#include "shaders/mutant_attention_decode_not_rescaled.hpp"
#include "shaders/mutant_attention_decode_stale_place.hpp"

namespace assay::falsify::attention_decode_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader, bool first_sequence_only = false>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::attention_decode_row<shader, first_sequence_only>(""), id, fault);
}

const KernelRegistration registrations[] = {
    wrong<shaders::attention_decode_tiles, true>("mutant/vulkan/attention_decode/first_sequence_only",
                                                 "one sequence's workgroups are launched for a batch (bug 43)"),
    wrong<shaders::mutant_attention_decode_first_head_appended>("mutant/vulkan/attention_decode/first_head_appended",
                                                                "only head 0 is appended (bug 31)"),
    wrong<shaders::mutant_attention_decode_stale_place>("mutant/vulkan/attention_decode/stale_place", "attends one place too many"),
    wrong<shaders::mutant_attention_decode_lengths_of_first>("mutant/vulkan/attention_decode/lengths_of_first",
                                                             "every sequence stands where the first does"),
    wrong<shaders::mutant_attention_decode_not_rescaled>("mutant/vulkan/attention_decode/not_rescaled",
                                                         "sums are not rescaled where the maximum grows"),
    wrong<shaders::mutant_attention_decode_last_partials_lost>("mutant/vulkan/attention_decode/last_partials_lost",
                                                               "reductions stop before their last step (bug 44)"),
    wrong<shaders::mutant_attention_decode_no_barrier>("mutant/vulkan/attention_decode/no_barrier",
                                                       "scores are read before all are stored (bug 28)"),
};

}  // namespace
}  // namespace assay::falsify::attention_decode_mutants
