// Wrong adapters: the right shaders in a wrong composition, or shaders at fault.
#include "kernels/vulkan/lora.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "shaders/lora_linear_backward_naive16.hpp"
#include "shaders/lora_linear_backward_naive16_tn.hpp"
#include "shaders/lora_linear_backward_tiled64.hpp"
#include "shaders/lora_linear_backward_tiled64_tn.hpp"
#include "shaders/lora_linear_tiled64.hpp"
#include "shaders/lora_merge_tiled64.hpp"
#include "shaders/lora_unmerge_tiled64.hpp"
#include "shaders/mutant_lora_linear_backward_last_k_dropped.hpp"
#include "shaders/mutant_lora_linear_backward_last_k_dropped_tn.hpp"
#include "shaders/mutant_lora_linear_backward_no_barrier_after_use.hpp"
#include "shaders/mutant_lora_linear_early_return.hpp"
#include "shaders/mutant_lora_linear_factors_not_transposed.hpp"
#include "shaders/mutant_lora_linear_ragged_k_dropped.hpp"
#include "shaders/mutant_lora_merge_factors_transposed.hpp"
#include "shaders/mutant_lora_merge_no_barrier_after_store.hpp"
#include "shaders/mutant_lora_merge_row_past_end.hpp"
#include "shaders/mutant_lora_unmerge_bf16_inputs.hpp"
#include "shaders/mutant_lora_unmerge_zero_operands_skipped.hpp"

namespace assay::falsify::lora_mutants {
namespace {

namespace shaders = vulkan::shaders;
using L = LoraFault;
using vulkan::ProductShaders;

constexpr ProductShaders kForward{.b_transposed = &shaders::lora_linear_tiled64, .tile = 64};
constexpr ProductShaders kNotTransposed{.b_transposed = &shaders::mutant_lora_linear_factors_not_transposed,
                                        .tile = 16};
constexpr ProductShaders kEarlyReturn{.b_transposed = &shaders::mutant_lora_linear_early_return, .tile = 16};
constexpr ProductShaders kRaggedDropped{.b_transposed = &shaders::mutant_lora_linear_ragged_k_dropped, .tile = 64};
constexpr ProductShaders kBackward{.plain = &shaders::lora_linear_backward_tiled64,
                                   .a_transposed = &shaders::lora_linear_backward_tiled64_tn,
                                   .tile = 64};
constexpr ProductShaders kLastDropped{.plain = &shaders::mutant_lora_linear_backward_last_k_dropped,
                                      .a_transposed = &shaders::lora_linear_backward_naive16_tn,
                                      .tile = 16};
constexpr ProductShaders kLastRowDropped{.plain = &shaders::lora_linear_backward_naive16,
                                         .a_transposed = &shaders::mutant_lora_linear_backward_last_k_dropped_tn,
                                         .tile = 16};
constexpr ProductShaders kNoBarrierAfterUse{.plain = &shaders::mutant_lora_linear_backward_no_barrier_after_use,
                                            .a_transposed = &shaders::lora_linear_backward_tiled64_tn,
                                            .tile = 64};
constexpr ProductShaders kMerge{.plain = &shaders::lora_merge_tiled64, .tile = 64};
constexpr ProductShaders kTransposed{.plain = &shaders::mutant_lora_merge_factors_transposed, .tile = 16};
constexpr ProductShaders kRowPastEnd{.plain = &shaders::mutant_lora_merge_row_past_end, .tile = 16};
constexpr ProductShaders kNoBarrierAfterStore{.plain = &shaders::mutant_lora_merge_no_barrier_after_store, .tile = 64};
constexpr ProductShaders kUnmerge{.plain = &shaders::lora_unmerge_tiled64, .tile = 64};
constexpr ProductShaders kBf16Inputs{.plain = &shaders::mutant_lora_unmerge_bf16_inputs, .tile = 16};
constexpr ProductShaders kZerosSkipped{.plain = &shaders::mutant_lora_unmerge_zero_operands_skipped, .tile = 16};

template <const ProductShaders& shaders, LoraFault fault = LoraFault::none>
KernelRegistration forward(std::string_view id, std::string_view text) {
  return shader_mutant(vulkan::lora_linear_kernel<&vulkan::multiply<shaders>, fault>("", ""), id, text);
}
template <const ProductShaders& shaders, LoraFault fault = LoraFault::none>
KernelRegistration backward(std::string_view id, std::string_view text) {
  return shader_mutant(vulkan::lora_linear_backward_kernel<&vulkan::multiply<shaders>, fault>("", ""), id, text);
}
template <const ProductShaders& shaders, LoraFault fault = LoraFault::none>
KernelRegistration merge(std::string_view id, std::string_view text) {
  return shader_mutant(vulkan::lora_merge_kernel<&vulkan::multiply<shaders>, fault>("", ""), id, text);
}
template <const ProductShaders& shaders, LoraFault fault = LoraFault::none>
KernelRegistration unmerge(std::string_view id, std::string_view text) {
  return shader_mutant(vulkan::lora_unmerge_kernel<&vulkan::multiply<shaders>, fault>("", ""), id, text);
}

const KernelRegistration registrations[] = {
    forward<kForward, L::bias_dropped>("mutant/vulkan/lora_linear/bias_dropped",
                                       "BUG 42: the path with an adapter drops the bias"),
    forward<kForward, L::scale_by_root>("mutant/vulkan/lora_linear/scale_by_root",
                                        "BUG 76: alpha / sqrt(r), the scale of rsLoRA"),
    forward<kForward, L::layer_overwritten>("mutant/vulkan/lora_linear/layer_overwritten",
                                            "the adapter takes the place of the layer"),
    forward<kForward, L::t_of_first_row>("mutant/vulkan/lora_linear/t_of_first_row",
                                         "BUG 43: t computed for one row of a batch"),
    forward<kNotTransposed>("mutant/vulkan/lora_linear/factors_not_transposed",
                            "BUG 3: W, A and B read without the transposition"),
    forward<kEarlyReturn>("mutant/vulkan/lora_linear/early_return",
                          "BUG 14: invocations outside a result return before the barrier"),
    forward<kRaggedDropped>("mutant/vulkan/lora_linear/ragged_k_dropped",
                            "BUG 8: the number of tiles along sums is rounded down"),
    backward<kBackward, L::stale_scratch>("mutant/vulkan/lora_linear_backward/stale_scratch",
                                          "BUG 24: dy · B added to what scratch memory held"),
    backward<kBackward, L::da_not_scaled>("mutant/vulkan/lora_linear_backward/da_not_scaled",
                                          "BUG 48: dA without alpha / r"),
    backward<kBackward, L::dx_of_adapter_alone>("mutant/vulkan/lora_linear_backward/dx_of_adapter_alone",
                                                "BUG 47: dx without the part of the frozen layer"),
    backward<kBackward, L::db_of_first_row>("mutant/vulkan/lora_linear_backward/db_of_first_row",
                                            "BUG 43: dB of the first row alone"),
    backward<kLastDropped>("mutant/vulkan/lora_linear_backward/last_term_dropped",
                           "sums over columns end one term early"),
    backward<kLastRowDropped>("mutant/vulkan/lora_linear_backward/last_row_dropped", "dA and dB without the last row"),
    backward<kNoBarrierAfterUse>("mutant/vulkan/lora_linear_backward/no_barrier_after_use",
                                 "BUG 24: tiles are overwritten while others still read them"),
    merge<kMerge, L::scale_by_root>("mutant/vulkan/lora_merge/scale_by_root",
                                    "BUG 76: alpha / sqrt(r), the scale of rsLoRA"),
    merge<kMerge, L::weight_dropped>("mutant/vulkan/lora_merge/weight_dropped",
                                     "the adapter takes the place of the weight"),
    merge<kTransposed>("mutant/vulkan/lora_merge/factors_transposed", "BUG 77: A and B read as their transposes"),
    merge<kRowPastEnd>("mutant/vulkan/lora_merge/row_past_end", "BUG 2: a partial tile stores one row past the end"),
    merge<kNoBarrierAfterStore>("mutant/vulkan/lora_merge/no_barrier_after_store",
                                "BUG 28: tiles are read before all of them is stored"),
    unmerge<kUnmerge, L::sign_flipped>("mutant/vulkan/lora_unmerge/sign_flipped",
                                       "the adapter is merged a second time"),
    unmerge<kUnmerge, L::scale_is_alpha>("mutant/vulkan/lora_unmerge/scale_is_alpha",
                                         "BUG 76: alpha in place of alpha / r"),
    unmerge<kBf16Inputs>("mutant/vulkan/lora_unmerge/bf16_inputs", "B is truncated to bf16 and nothing declares it"),
    unmerge<kZerosSkipped>("mutant/vulkan/lora_unmerge/zero_operands_skipped",
                           "terms with a zero in B are skipped: 0 * NaN gives 0"),
};

}  // namespace
}  // namespace assay::falsify::lora_mutants
