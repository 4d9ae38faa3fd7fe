// Wrong gradients of attention: its shaders, for heads of up to 64 elements, compiled with a FAULT_* macro.
#include "kernels/vulkan/attention_backward.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "shaders/mutant_attention_backward_along_dropped.hpp"
#include "shaders/mutant_attention_backward_head_modulo.hpp"
#include "shaders/mutant_attention_backward_kv_along_dropped.hpp"
#include "shaders/mutant_attention_backward_kv_first_head_only.hpp"
#include "shaders/mutant_attention_backward_kv_head_modulo.hpp"
#include "shaders/mutant_attention_backward_kv_last_rows_dropped.hpp"
#include "shaders/mutant_attention_backward_kv_masked_values_leak.hpp"
#include "shaders/mutant_attention_backward_kv_no_barrier_after_use.hpp"
#include "shaders/mutant_attention_backward_kv_scale_missing.hpp"
#include "shaders/mutant_attention_backward_kv_values_by_ds.hpp"
#include "shaders/mutant_attention_backward_masked_values_leak.hpp"
#include "shaders/mutant_attention_backward_no_barrier_after_store.hpp"
#include "shaders/mutant_attention_backward_no_barrier_after_use.hpp"
#include "shaders/mutant_attention_backward_rows_causal_off_by_one.hpp"
#include "shaders/mutant_attention_backward_rows_lengths_ignored.hpp"
#include "shaders/mutant_attention_backward_rows_mask_absent.hpp"
#include "shaders/mutant_attention_backward_rows_masked_row.hpp"
#include "shaders/mutant_attention_backward_scale_missing.hpp"

namespace assay::falsify::attention_backward_mutants {
namespace {

namespace shaders = vulkan::shaders;
using vulkan::Shader;

template <const Shader& rows = shaders::attention_backward_rows, const Shader& dq = shaders::attention_backward_64,
          const Shader& dkv = shaders::attention_backward_kv_64>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::attention_backward_tiled<rows, dq, dkv>(""), id, fault);
}
template <const Shader& shader>
KernelRegistration wrong_dq(std::string_view id, std::string_view fault) {
  return wrong<shaders::attention_backward_rows, shader>(id, fault);
}
template <const Shader& shader>
KernelRegistration wrong_dkv(std::string_view id, std::string_view fault) {
  return wrong<shaders::attention_backward_rows, shaders::attention_backward_64, shader>(id, fault);
}

const KernelRegistration registrations[] = {
    wrong<shaders::mutant_attention_backward_rows_causal_off_by_one>(
        "mutant/vulkan/attention_backward/causal_off_by_one", "BUG 38: a query does not see its own position"),
    wrong<shaders::mutant_attention_backward_rows_mask_absent>("mutant/vulkan/attention_backward/mask_absent",
                                                               "BUG 38: no causal mask"),
    wrong<shaders::mutant_attention_backward_rows_lengths_ignored>("mutant/vulkan/attention_backward/lengths_ignored",
                                                                   "BUG 30: all places for keys are read"),
    wrong<shaders::mutant_attention_backward_rows_masked_row>("mutant/vulkan/attention_backward/masked_row",
                                                              "BUG 40: exp(score - -inf) of a row that sees nothing"),
    wrong_dq<shaders::mutant_attention_backward_along_dropped>("mutant/vulkan/attention_backward/dq_along_dropped",
                                                               "dq without the row sum of dy y"),
    wrong_dq<shaders::mutant_attention_backward_scale_missing>("mutant/vulkan/attention_backward/dq_scale_missing",
                                                               "dq is not scaled"),
    wrong_dq<shaders::mutant_attention_backward_masked_values_leak>(
        "mutant/vulkan/attention_backward/dq_masked_values_leak",
        "BUG 40: zero times NaN of keys that a query does not see"),
    wrong_dq<shaders::mutant_attention_backward_no_barrier_after_use>(
        "mutant/vulkan/attention_backward/dq_no_barrier_after_use", "BUG 28: a tile is overwritten while it is read"),
    wrong_dq<shaders::mutant_attention_backward_no_barrier_after_store>(
        "mutant/vulkan/attention_backward/dq_no_barrier_after_store",
        "BUG 28: a tile is read before all of it is stored"),
    wrong_dq<shaders::mutant_attention_backward_head_modulo>("mutant/vulkan/attention_backward/dq_head_modulo",
                                                             "BUG 15: head h reads key-value head h % kv_heads"),
    wrong_dkv<shaders::mutant_attention_backward_kv_along_dropped>("mutant/vulkan/attention_backward/dkv_along_dropped",
                                                                   "dk without the row sum of dy y"),
    wrong_dkv<shaders::mutant_attention_backward_kv_first_head_only>(
        "mutant/vulkan/attention_backward/dkv_first_head_only",
        "BUG 31: only the first head of a group reaches dk and dv"),
    wrong_dkv<shaders::mutant_attention_backward_kv_scale_missing>("mutant/vulkan/attention_backward/dkv_scale_missing",
                                                                   "dk is not scaled"),
    wrong_dkv<shaders::mutant_attention_backward_kv_values_by_ds>("mutant/vulkan/attention_backward/dkv_values_by_ds",
                                                                  "dv of ds in place of p"),
    wrong_dkv<shaders::mutant_attention_backward_kv_masked_values_leak>(
        "mutant/vulkan/attention_backward/dkv_masked_values_leak",
        "BUG 40: zero times NaN of queries that do not see a key"),
    wrong_dkv<shaders::mutant_attention_backward_kv_no_barrier_after_use>(
        "mutant/vulkan/attention_backward/dkv_no_barrier_after_use", "BUG 28: a tile is overwritten while it is read"),
    wrong_dkv<shaders::mutant_attention_backward_kv_head_modulo>("mutant/vulkan/attention_backward/dkv_head_modulo",
                                                                 "BUG 15: head h reads key-value head h % kv_heads"),
    wrong_dkv<shaders::mutant_attention_backward_kv_last_rows_dropped>(
        "mutant/vulkan/attention_backward/dkv_last_rows_dropped", "BUG 8: rows past the last whole tile are left out"),
};

}  // namespace
}  // namespace assay::falsify::attention_backward_mutants
