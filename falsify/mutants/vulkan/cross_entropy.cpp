// Wrong cross-entropies: shaders compiled with a FAULT_* macro.
#include "kernels/vulkan/cross_entropy.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "kernels/vulkan/cross_entropy_backward.hpp"
#include "shaders/cross_entropy_row.hpp"
#include "shaders/cross_entropy_total.hpp"
#include "shaders/mutant_cross_entropy_backward_normalizer_ignored.hpp"
#include "shaders/mutant_cross_entropy_backward_onehot_missing.hpp"
#include "shaders/mutant_cross_entropy_backward_tail_dropped.hpp"
#include "shaders/mutant_cross_entropy_last_partials_lost.hpp"
#include "shaders/mutant_cross_entropy_mean_over_rows.hpp"
#include "shaders/mutant_cross_entropy_own_maximum.hpp"
#include "shaders/mutant_cross_entropy_padded_with_zero.hpp"

namespace assay::falsify::cross_entropy_mutants {
namespace {

namespace shaders = vulkan::shaders;
using vulkan::Shader;

template <const Shader& row, const Shader& total = shaders::cross_entropy_total>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::cross_entropy_kernel<row, total>(""), id, fault);
}
template <const Shader& shader>
KernelRegistration wrong_backward(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::cross_entropy_backward_kernel<shader>(""), id, fault);
}

const KernelRegistration registrations[] = {
    wrong<shaders::mutant_cross_entropy_padded_with_zero>("mutant/vulkan/cross_entropy/padded_with_zero",
                                                          "lanes past the last class raise the maximum to 0"),
    wrong<shaders::mutant_cross_entropy_own_maximum>("mutant/vulkan/cross_entropy/own_maximum",
                                                     "each invocation subtracts its own maximum"),
    wrong<shaders::mutant_cross_entropy_last_partials_lost>("mutant/vulkan/cross_entropy/last_partials_lost",
                                                            "the sum stops before its last step (bug 44)"),
    wrong<shaders::cross_entropy_row, shaders::mutant_cross_entropy_mean_over_rows>(
        "mutant/vulkan/cross_entropy/mean_over_rows", "the weighted mean divides by rows (bug 58)"),
    wrong_backward<shaders::mutant_cross_entropy_backward_onehot_missing>(
        "mutant/vulkan/cross_entropy_backward/onehot_missing", "p where p - onehot is due"),
    wrong_backward<shaders::mutant_cross_entropy_backward_normalizer_ignored>(
        "mutant/vulkan/cross_entropy_backward/normalizer_ignored", "the gradient of the sum for the mean's (bug 71)"),
    wrong_backward<shaders::mutant_cross_entropy_backward_tail_dropped>(
        "mutant/vulkan/cross_entropy_backward/tail_dropped", "the last classes % 4 classes unwritten (bug 8)"),
};

}  // namespace
}  // namespace assay::falsify::cross_entropy_mutants
