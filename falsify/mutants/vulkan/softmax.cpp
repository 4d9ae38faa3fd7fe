// Wrong softmaxes and gradients: the right shaders compiled with a FAULT_* macro.
#include "kernels/vulkan/softmax.hpp"

#include "kernels/vulkan/softmax_backward.hpp"
#include "shaders/mutant_softmax_backward_last_partials_lost.hpp"
#include "shaders/mutant_softmax_backward_sum_dropped.hpp"
#include "shaders/mutant_softmax_last_partials_lost.hpp"
#include "shaders/mutant_softmax_masked_row.hpp"
#include "shaders/mutant_softmax_no_barrier.hpp"
#include "shaders/mutant_softmax_not_shifted.hpp"

namespace assay::falsify::softmax_mutants {
namespace {

namespace shaders = vulkan::shaders;

KernelRegistration wrong(Kernel right, std::string_view fault) {
  right.source = "falsify/mutants/vulkan/softmax.cpp";
  right.summary = "wrong on purpose";
  right.role = KernelRole::mutant;
  right.fault = fault;
  return KernelRegistration(right);
}

const KernelRegistration registrations[] = {
    wrong(vulkan::softmax_row<shaders::mutant_softmax_not_shifted>("mutant/vulkan/softmax/not_shifted"),
          "the maximum is not taken off"),
    wrong(vulkan::softmax_row<shaders::mutant_softmax_masked_row>("mutant/vulkan/softmax/masked_row"),
          "BUG 40: a masked row gives -inf - -inf"),
    wrong(vulkan::softmax_row<shaders::mutant_softmax_last_partials_lost>("mutant/vulkan/softmax/last_partials_lost"),
          "BUG 44: reductions stop before their last step"),
    wrong(vulkan::softmax_row<shaders::mutant_softmax_no_barrier>("mutant/vulkan/softmax/no_barrier"),
          "BUG 28: partial results are read before all are stored"),
    wrong(vulkan::softmax_backward_row<shaders::mutant_softmax_backward_sum_dropped>("mutant/vulkan/softmax_backward/sum_dropped"),
          "dx = y dy"),
    wrong(vulkan::softmax_backward_row<shaders::mutant_softmax_backward_last_partials_lost>(
              "mutant/vulkan/softmax_backward/last_partials_lost"),
          "BUG 44: the reduction stops before its last step"),
};

}  // namespace
}  // namespace assay::falsify::softmax_mutants
