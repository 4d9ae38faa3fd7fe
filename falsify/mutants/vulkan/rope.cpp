// Wrong rotations: rotary.glsl compiled with a FAULT_* macro, or launched as the other pass.
#include "ops/rope.hpp"

#include "kernels/vulkan/rotary.hpp"
#include "ops/rope_backward.hpp"
#include "shaders/mutant_rope_backward_row_forgotten.hpp"
#include "shaders/mutant_rope_other_layout.hpp"
#include "shaders/mutant_rope_reduced_in_float.hpp"
#include "shaders/mutant_rope_row_forgotten.hpp"
#include "shaders/rope_pairs.hpp"

namespace assay::falsify::rope_mutants {
namespace {

namespace shaders = vulkan::shaders;
using ops::RopeArgs, ops::RopeBackwardArgs;

KernelRegistration wrong(Kernel right, std::string_view fault) {
  right.source = "falsify/mutants/vulkan/rope.cpp";
  right.summary = "wrong on purpose";
  right.role = KernelRole::mutant;
  right.fault = fault;
  return KernelRegistration(right);
}

const KernelRegistration registrations[] = {
    wrong(vulkan::rotary_row<RopeArgs, shaders::mutant_rope_reduced_in_float>("rope", "mutant/vulkan/rope/reduced_in_float"),
          "whole turns are taken off a float32 angle in float32"),
    wrong(vulkan::rotary_row<RopeArgs, shaders::mutant_rope_row_forgotten>("rope", "mutant/vulkan/rope/row_forgotten"),
          "every row stands at the first one's position"),
    wrong(vulkan::rotary_row<RopeArgs, shaders::mutant_rope_other_layout>("rope", "mutant/vulkan/rope/other_layout"),
          "BUG 36: pairs of the other layout"),
    wrong(vulkan::rotary_row<RopeBackwardArgs, shaders::mutant_rope_backward_row_forgotten>(
              "rope_backward", "mutant/vulkan/rope_backward/row_forgotten"),
          "every row stands at the first one's position"),
    wrong(vulkan::rotary_row<RopeBackwardArgs, shaders::rope_pairs>("rope_backward", "mutant/vulkan/rope_backward/rotated_forward"),
          "rotates as the forward pass does"),
};

}  // namespace
}  // namespace assay::falsify::rope_mutants
