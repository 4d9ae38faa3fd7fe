// Wrong binary cross-entropies: shaders compiled with a FAULT_* macro.
#include "kernels/vulkan/bce_with_logits.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "kernels/vulkan/bce_with_logits_backward.hpp"
#include "shaders/mutant_bce_with_logits_backward_sum_for_mean.hpp"
#include "shaders/mutant_bce_with_logits_backward_tail_dropped.hpp"
#include "shaders/mutant_bce_with_logits_backward_weight_ignored.hpp"
#include "shaders/mutant_bce_with_logits_last_partials_lost.hpp"
#include "shaders/mutant_bce_with_logits_plain_log.hpp"
#include "shaders/mutant_bce_with_logits_sum_for_mean.hpp"
#include "shaders/mutant_bce_with_logits_tail_dropped.hpp"

namespace assay::falsify::bce_with_logits_mutants {
namespace {

namespace shaders = vulkan::shaders;
using vulkan::Shader;

template <const Shader& shader>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::bce_kernel<shader>(""), id, fault);
}
template <const Shader& shader>
KernelRegistration wrong_backward(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::bce_backward_kernel<shader>(""), id, fault);
}

const KernelRegistration registrations[] = {
    wrong<shaders::mutant_bce_with_logits_tail_dropped>("mutant/vulkan/bce_with_logits/tail_dropped",
                                                        "floor instead of ceiling of classes / 4 (bug 8)"),
    wrong<shaders::mutant_bce_with_logits_plain_log>("mutant/vulkan/bce_with_logits/plain_log",
                                                     "log(1 + z) for log1p(z): a small loss is lost in rounding"),
    wrong<shaders::mutant_bce_with_logits_sum_for_mean>("mutant/vulkan/bce_with_logits/sum_for_mean",
                                                        "the sum over classes for their mean (bug 71)"),
    wrong<shaders::mutant_bce_with_logits_last_partials_lost>("mutant/vulkan/bce_with_logits/last_partials_lost",
                                                              "the reduction stops before its last step (bug 44)"),
    wrong_backward<shaders::mutant_bce_with_logits_backward_tail_dropped>(
        "mutant/vulkan/bce_with_logits_backward/tail_dropped", "the last classes % 4 labels unwritten (bug 8)"),
    wrong_backward<shaders::mutant_bce_with_logits_backward_sum_for_mean>(
        "mutant/vulkan/bce_with_logits_backward/sum_for_mean", "not divided by classes (bug 71)"),
    wrong_backward<shaders::mutant_bce_with_logits_backward_weight_ignored>(
        "mutant/vulkan/bce_with_logits_backward/weight_ignored", "pos_weight taken as 1"),
};

}  // namespace
}  // namespace assay::falsify::bce_with_logits_mutants
