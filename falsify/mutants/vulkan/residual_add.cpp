// Wrong residual_add: residual_add.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/residual_add.hpp"

#include "shaders/mutant_residual_add_alpha_ignored.hpp"
#include "shaders/mutant_residual_add_first_row_only.hpp"
#include "shaders/mutant_residual_add_tail_unwritten.hpp"

namespace assay::falsify::residual_add_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(vulkan::residual_add_row<shader>("", "falsify/mutants/vulkan/residual_add.cpp", ""), id,
                            fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_residual_add_alpha_ignored>("mutant/vulkan/residual_add/alpha_ignored",
                                                                         "the scale of the branch is left out")),
    KernelRegistration(wrong<shaders::mutant_residual_add_first_row_only>(
        "mutant/vulkan/residual_add/first_row_only", "a single row is launched for a batch (bug 43)")),
    KernelRegistration(wrong<shaders::mutant_residual_add_tail_unwritten>(
        "mutant/vulkan/residual_add/tail_unwritten", "columns past the last whole group of four unwritten (bug 8)")),
};

}  // namespace
}  // namespace assay::falsify::residual_add_mutants
