// Wrong linear layers: the right shader in a wrong composition, or a shader at fault.
#include "kernels/vulkan/linear.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "shaders/linear_tiled64.hpp"
#include "shaders/mutant_linear_bf16_inputs.hpp"
#include "shaders/mutant_linear_early_return.hpp"
#include "shaders/mutant_linear_no_barrier_after_store.hpp"
#include "shaders/mutant_linear_ragged_k_dropped.hpp"
#include "shaders/mutant_linear_row_past_end.hpp"
#include "shaders/mutant_linear_weight_not_transposed.hpp"

namespace assay::falsify::linear_mutants {
namespace {

namespace shaders = vulkan::shaders;
using vulkan::ProductShaders;

constexpr ProductShaders kRight{.b_transposed = &shaders::linear_tiled64, .tile = 64};
constexpr ProductShaders kNotTransposed{.b_transposed = &shaders::mutant_linear_weight_not_transposed, .tile = 16};
constexpr ProductShaders kEarlyReturn{.b_transposed = &shaders::mutant_linear_early_return, .tile = 16};
constexpr ProductShaders kRowPastEnd{.b_transposed = &shaders::mutant_linear_row_past_end, .tile = 16};
constexpr ProductShaders kBf16Inputs{.b_transposed = &shaders::mutant_linear_bf16_inputs, .tile = 16};
constexpr ProductShaders kRaggedDropped{.b_transposed = &shaders::mutant_linear_ragged_k_dropped, .tile = 64};
constexpr ProductShaders kNoBarrier{.b_transposed = &shaders::mutant_linear_no_barrier_after_store, .tile = 64};

template <const ProductShaders& shaders, LinearFault fault = LinearFault::none>
KernelRegistration wrong(std::string_view id, std::string_view text) {
  return shader_mutant(vulkan::linear_kernel<&vulkan::multiply<shaders>, fault>("", ""), id, text);
}

const KernelRegistration registrations[] = {
    wrong<kRight, LinearFault::bias_dropped>("mutant/vulkan/linear/bias_dropped", "BUG 42: the bias is not added"),
    wrong<kRight, LinearFault::stale_output>("mutant/vulkan/linear/stale_output",
                                             "BUG 29: without a bias, what y held is added"),
    wrong<kRight, LinearFault::first_row_only>("mutant/vulkan/linear/first_row_only",
                                               "BUG 43: a kernel of one row dispatched for a batch"),
    wrong<kNotTransposed>("mutant/vulkan/linear/weight_not_transposed", "BUG 6: W is read as if it were [in, out]"),
    wrong<kEarlyReturn>("mutant/vulkan/linear/early_return", "BUG 14: invocations outside y return before the barrier"),
    wrong<kRowPastEnd>("mutant/vulkan/linear/row_past_end", "BUG 2: a partial tile stores one row past the end of y"),
    wrong<kBf16Inputs>("mutant/vulkan/linear/bf16_inputs", "x is truncated to bf16 and nothing declares it"),
    wrong<kRaggedDropped>("mutant/vulkan/linear/ragged_k_dropped",
                          "BUG 8: the number of tiles along in is rounded down"),
    wrong<kNoBarrier>("mutant/vulkan/linear/no_barrier_after_store",
                      "BUG 28: tiles are read before all of them is stored"),
};

}  // namespace
}  // namespace assay::falsify::linear_mutants
