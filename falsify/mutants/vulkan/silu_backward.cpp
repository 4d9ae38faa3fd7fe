// Wrong silu_backward: silu_backward.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/silu_backward.hpp"

#include "shaders/mutant_silu_backward_first_row_only.hpp"
#include "shaders/mutant_silu_backward_sigmoid_slope.hpp"

namespace assay::falsify::silu_backward_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(vulkan::silu_backward_row<shader>("", "falsify/mutants/vulkan/silu_backward.cpp", ""), id,
                            fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_silu_backward_sigmoid_slope>("mutant/vulkan/silu_backward/sigmoid_slope",
                                                                          "the slope of sigmoid alone (bug 51)")),
    KernelRegistration(wrong<shaders::mutant_silu_backward_first_row_only>(
        "mutant/vulkan/silu_backward/first_row_only", "a single row is launched for a batch (bug 43)")),
};

}  // namespace
}  // namespace assay::falsify::silu_backward_mutants
