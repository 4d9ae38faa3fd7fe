// Wrong scale: scale.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/scale.hpp"

#include "shaders/mutant_scale_sign_lost.hpp"
#include "shaders/mutant_scale_tail_unwritten.hpp"

namespace assay::falsify::scale_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(vulkan::scale_row<shader>("", "falsify/mutants/vulkan/scale.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(
        wrong<shaders::mutant_scale_sign_lost>("mutant/vulkan/scale/sign_lost", "the magnitude of alpha is used")),
    KernelRegistration(wrong<shaders::mutant_scale_tail_unwritten>(
        "mutant/vulkan/scale/tail_unwritten", "columns past the last whole group of four unwritten (bug 8)")),
};

}  // namespace
}  // namespace assay::falsify::scale_mutants
