// Wrong gates and gradients: the right shaders compiled with a FAULT_* macro.
#include "kernels/vulkan/silu_mul.hpp"

#include "ops/silu_mul.hpp"
#include "ops/silu_mul_backward.hpp"
#include "shaders/mutant_silu_mul_backward_no_up.hpp"
#include "shaders/mutant_silu_mul_backward_sigmoid_slope.hpp"
#include "shaders/mutant_silu_mul_tail_unwritten.hpp"
#include "shaders/mutant_silu_mul_up_forgotten.hpp"

namespace assay::falsify::silu_mul_mutants {
namespace {

namespace shaders = vulkan::shaders;
using ops::SiluMulArgs, ops::SiluMulBackwardArgs;

KernelRegistration wrong(Kernel right, std::string_view fault) {
  right.source = "falsify/mutants/vulkan/silu_mul.cpp";
  right.summary = "wrong on purpose";
  right.role = KernelRole::mutant;
  right.fault = fault;
  return KernelRegistration(right);
}

const KernelRegistration registrations[] = {
    wrong(vulkan::silu_mul_row<SiluMulArgs, shaders::mutant_silu_mul_tail_unwritten>("mutant/vulkan/silu_mul/tail_unwritten"),
          "BUG 8: floor instead of ceiling of n / 4"),
    wrong(vulkan::silu_mul_row<SiluMulArgs, shaders::mutant_silu_mul_up_forgotten>("mutant/vulkan/silu_mul/up_forgotten"),
          "silu alone"),
    wrong(vulkan::silu_mul_backward_row<SiluMulBackwardArgs, shaders::mutant_silu_mul_backward_no_up>(
              "mutant/vulkan/silu_mul_backward/no_up"),
          "BUG 17: dgate lacks the factor up"),
    wrong(vulkan::silu_mul_backward_row<SiluMulBackwardArgs, shaders::mutant_silu_mul_backward_sigmoid_slope>(
              "mutant/vulkan/silu_mul_backward/sigmoid_slope"),
          "BUG 51: the slope of sigmoid for that of silu"),
};

}  // namespace
}  // namespace assay::falsify::silu_mul_mutants
