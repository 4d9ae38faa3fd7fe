// Wrong attentions: attention.comp for heads of up to 64 elements, compiled with a FAULT_* macro.
#include "kernels/vulkan/attention.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "shaders/mutant_attention_causal_off_by_one.hpp"
#include "shaders/mutant_attention_head_modulo.hpp"
#include "shaders/mutant_attention_last_key_dropped.hpp"
#include "shaders/mutant_attention_lengths_ignored.hpp"
#include "shaders/mutant_attention_logsumexp_unwritten.hpp"
#include "shaders/mutant_attention_mask_absent.hpp"
#include "shaders/mutant_attention_masked_row.hpp"
#include "shaders/mutant_attention_masked_values_leak.hpp"
#include "shaders/mutant_attention_no_barrier_after_store.hpp"
#include "shaders/mutant_attention_no_barrier_after_use.hpp"
#include "shaders/mutant_attention_own_scale.hpp"
#include "shaders/mutant_attention_sums_not_rescaled.hpp"
#include "shaders/mutant_attention_total_not_rescaled.hpp"

namespace assay::falsify::attention_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::attention_tiled<shader>(""), id, fault);
}

const KernelRegistration registrations[] = {
    wrong<shaders::mutant_attention_sums_not_rescaled>("mutant/vulkan/attention/sums_not_rescaled",
                                                       "where a maximum grows, sums of values keep their old scale"),
    wrong<shaders::mutant_attention_total_not_rescaled>(
        "mutant/vulkan/attention/total_not_rescaled", "where a maximum grows, the sum of weights keeps its old scale"),
    wrong<shaders::mutant_attention_causal_off_by_one>("mutant/vulkan/attention/causal_off_by_one",
                                                       "BUG 38: a query does not see its own position"),
    wrong<shaders::mutant_attention_mask_absent>("mutant/vulkan/attention/mask_absent", "BUG 38: no causal mask"),
    wrong<shaders::mutant_attention_lengths_ignored>("mutant/vulkan/attention/lengths_ignored",
                                                     "BUG 30: all places for keys are read"),
    wrong<shaders::mutant_attention_head_modulo>("mutant/vulkan/attention/head_modulo",
                                                 "BUG 15: head h reads key-value head h % kv_heads"),
    wrong<shaders::mutant_attention_own_scale>("mutant/vulkan/attention/own_scale", "1 / sqrt(d) whatever scale says"),
    wrong<shaders::mutant_attention_last_key_dropped>("mutant/vulkan/attention/last_key_dropped",
                                                      "BUG 8: a ragged tile's last key is left out"),
    wrong<shaders::mutant_attention_no_barrier_after_use>("mutant/vulkan/attention/no_barrier_after_use",
                                                          "BUG 28: a tile is overwritten while it is read"),
    wrong<shaders::mutant_attention_no_barrier_after_store>("mutant/vulkan/attention/no_barrier_after_store",
                                                            "BUG 28: a tile is read before all of it is stored"),
    wrong<shaders::mutant_attention_masked_row>("mutant/vulkan/attention/masked_row",
                                                "BUG 40: a row that sees nothing gives -inf - -inf"),
    wrong<shaders::mutant_attention_masked_values_leak>("mutant/vulkan/attention/masked_values_leak",
                                                        "BUG 40: zero times NaN of values that a query does not see"),
    wrong<shaders::mutant_attention_logsumexp_unwritten>("mutant/vulkan/attention/logsumexp_unwritten",
                                                         "BUG 29: logsumexp is never written"),
};

}  // namespace
}  // namespace assay::falsify::attention_mutants
