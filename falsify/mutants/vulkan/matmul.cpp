// Wrong products whose shader is at fault.
#include "ops/matmul.hpp"

#include "falsify/mutants/vulkan/product.hpp"
#include "shaders/mutant_matmul_b_transposed.hpp"
#include "shaders/mutant_matmul_bf16_inputs.hpp"
#include "shaders/mutant_matmul_early_return.hpp"
#include "shaders/mutant_matmul_last_k_dropped.hpp"
#include "shaders/mutant_matmul_no_barrier_after_store.hpp"
#include "shaders/mutant_matmul_no_barrier_after_use.hpp"
#include "shaders/mutant_matmul_ragged_k_dropped.hpp"
#include "shaders/mutant_matmul_row_past_end.hpp"
#include "shaders/mutant_matmul_stale_accumulator.hpp"
#include "shaders/mutant_matmul_zero_operands_skipped.hpp"

namespace assay::falsify::matmul_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const Shader& shader, Index tile>
Kernel wrong(std::string_view id, std::string_view fault) {
  return product_mutant<ops::MatmulArgs, shader, tile>("matmul", id, "falsify/mutants/vulkan/matmul.cpp", fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_matmul_last_k_dropped, 16>("mutant/vulkan/matmul/last_k_dropped",
                                                                        "the sum ends one term early")),
    KernelRegistration(wrong<shaders::mutant_matmul_ragged_k_dropped, 64>(
        "mutant/vulkan/matmul/ragged_k_dropped", "BUG 8: the number of tiles along k is rounded down")),
    KernelRegistration(wrong<shaders::mutant_matmul_no_barrier_after_store, 64>(
        "mutant/vulkan/matmul/no_barrier_after_store", "BUG 28: tiles are read before all of them is stored")),
    KernelRegistration(wrong<shaders::mutant_matmul_no_barrier_after_use, 64>(
        "mutant/vulkan/matmul/no_barrier_after_use", "BUG 24: tiles are overwritten while others still read them")),
    KernelRegistration(wrong<shaders::mutant_matmul_b_transposed, 16>("mutant/vulkan/matmul/b_transposed",
                                                                      "BUG 6: B is read as if it were column-major")),
    KernelRegistration(wrong<shaders::mutant_matmul_stale_accumulator, 16>(
        "mutant/vulkan/matmul/stale_accumulator", "BUG 29: sums start from what C held before")),
    KernelRegistration(wrong<shaders::mutant_matmul_early_return, 16>(
        "mutant/vulkan/matmul/early_return", "BUG 14: invocations outside C return before the barrier")),
    KernelRegistration(wrong<shaders::mutant_matmul_row_past_end, 16>(
        "mutant/vulkan/matmul/row_past_end", "BUG 2: a partial tile stores one row past the end of C")),
    KernelRegistration(wrong<shaders::mutant_matmul_bf16_inputs, 16>("mutant/vulkan/matmul/bf16_inputs",
                                                                     "A is truncated to bf16 and nothing declares it")),
    KernelRegistration(wrong<shaders::mutant_matmul_zero_operands_skipped, 16>(
        "mutant/vulkan/matmul/zero_operands_skipped", "terms with a zero in A are skipped: 0 * NaN gives 0")),
};

}  // namespace
}  // namespace assay::falsify::matmul_mutants
