// Wrong bias_add_backward: bias_add_backward.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/bias_add_backward.hpp"

#include "shaders/mutant_bias_add_backward_mean.hpp"
#include "shaders/mutant_bias_add_backward_no_barrier.hpp"

namespace assay::falsify::bias_add_backward_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(
      vulkan::bias_add_backward_row<shader>("", "falsify/mutants/vulkan/bias_add_backward.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_bias_add_backward_no_barrier>(
        "mutant/vulkan/bias_add_backward/no_barrier",
        "the sums of the stripes are read before all are stored (bug 28)")),
    KernelRegistration(wrong<shaders::mutant_bias_add_backward_mean>("mutant/vulkan/bias_add_backward/mean",
                                                                     "the mean in place of the sum (bug 71)")),
};

}  // namespace
}  // namespace assay::falsify::bias_add_backward_mutants
