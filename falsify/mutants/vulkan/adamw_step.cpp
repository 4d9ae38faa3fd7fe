// Wrong steps of AdamW: adamw_step.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/adamw_step.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "shaders/mutant_adamw_step_decay_after_step.hpp"
#include "shaders/mutant_adamw_step_eps_before_correction.hpp"
#include "shaders/mutant_adamw_step_eps_under_the_root.hpp"

namespace assay::falsify::adamw_step_mutants {
namespace {

namespace shaders = vulkan::shaders;
using vulkan::Shader;

template <const Shader& shader>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::adamw_kernel<shader>(""), id, fault);
}

const KernelRegistration registrations[] = {
    wrong<shaders::mutant_adamw_step_eps_under_the_root>("mutant/vulkan/adamw_step/eps_under_the_root",
                                                         "sqrt(v + eps)"),
    wrong<shaders::mutant_adamw_step_eps_before_correction>("mutant/vulkan/adamw_step/eps_before_correction",
                                                            "eps is corrected with the root"),
    wrong<shaders::mutant_adamw_step_decay_after_step>("mutant/vulkan/adamw_step/decay_after_step",
                                                       "the update decays with p"),
};

}  // namespace
}  // namespace assay::falsify::adamw_step_mutants
