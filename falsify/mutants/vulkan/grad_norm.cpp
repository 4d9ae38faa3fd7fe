// Wrong norms of gradients, and clipping by them: shaders compiled with a FAULT_* macro.
#include "kernels/vulkan/grad_norm.hpp"

#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "shaders/global_grad_norm_partial.hpp"
#include "shaders/global_grad_norm_total.hpp"
#include "shaders/mutant_clip_grad_norm_scales_up.hpp"
#include "shaders/mutant_clip_grad_norm_squared.hpp"
#include "shaders/mutant_global_grad_norm_last_partials_lost.hpp"
#include "shaders/mutant_global_grad_norm_squared.hpp"
#include "shaders/mutant_global_grad_norm_tail_dropped.hpp"

namespace assay::falsify::grad_norm_mutants {
namespace {

namespace shaders = vulkan::shaders;
using vulkan::Shader;

template <const Shader& squares, const Shader& total = shaders::global_grad_norm_total>
KernelRegistration wrong(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::norm_kernel<squares, total>(""), id, fault);
}
template <const Shader& clip>
KernelRegistration wrong_clip(std::string_view id, std::string_view fault) {
  return shader_mutant(
      vulkan::clip_kernel<shaders::global_grad_norm_partial, shaders::global_grad_norm_total, clip>(""), id, fault);
}

const KernelRegistration registrations[] = {
    wrong<shaders::mutant_global_grad_norm_tail_dropped>("mutant/vulkan/global_grad_norm/tail_dropped",
                                                         "floor instead of ceiling of n / 4 (bug 8)"),
    wrong<shaders::mutant_global_grad_norm_last_partials_lost>("mutant/vulkan/global_grad_norm/last_partials_lost",
                                                               "the reduction stops before its last step (bug 44)"),
    wrong<shaders::global_grad_norm_partial, shaders::mutant_global_grad_norm_squared>(
        "mutant/vulkan/global_grad_norm/squared", "no root (bug 61)"),
    wrong_clip<shaders::mutant_clip_grad_norm_squared>("mutant/vulkan/clip_grad_norm/squared",
                                                       "clips by the square of the norm (bug 61)"),
    wrong_clip<shaders::mutant_clip_grad_norm_scales_up>("mutant/vulkan/clip_grad_norm/scales_up",
                                                         "gradients within the limit are scaled up to it"),
};

}  // namespace
}  // namespace assay::falsify::grad_norm_mutants
