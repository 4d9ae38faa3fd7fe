// Wrong transposes: transpose.comp compiled with a FAULT_* macro, or launched with a wrong leading dimension.
#include "kernels/vulkan/transpose.hpp"

#include "shaders/mutant_transpose_no_barrier.hpp"
#include "shaders/mutant_transpose_tail_unwritten.hpp"
#include "shaders/transpose_tiled32.hpp"

namespace assay::falsify::transpose_mutants {
namespace {

namespace shaders = vulkan::shaders;
using ops::TransposeArgs;
using vulkan::Shader;

template <void (*run)(const TransposeArgs&, Device&)>
Kernel wrong(std::string_view id, std::string_view fault) {
  return {.op = "transpose",
          .id = id,
          .backend = Backend::vulkan,
          .source = "falsify/mutants/vulkan/transpose.cpp",
          .summary = "a wrong transpose",
          .role = KernelRole::mutant,
          .fault = fault,
          .run = &run_typed<TransposeArgs, run>,
          .refuse = &refuse_typed<TransposeArgs, &vulkan::refuse_transpose>};
}

void run_with_width_of_src(const TransposeArgs& args, Device& device) {
  VulkanDevice& target = vulkan::vulkan_device(device);
  const std::array bindings{vulkan::bind(target, args.src), vulkan::bind(target, args.dst)};
  vulkan::TransposePush push = vulkan::plan_transpose(args, bindings[0], bindings[1]);
  push.dst_ld = push.n;
  target.dispatch({.name = "mutant_transpose_width_of_src",
                   .module = shaders::transpose_tiled32.module,
                   .bindings = bindings,
                   .push = vulkan::bytes_of(push),
                   .groups = {vulkan::groups(args.n, 32), vulkan::groups(args.m, 32), 1}});
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<&vulkan::run_transpose<shaders::mutant_transpose_tail_unwritten, 32>>(
        "mutant/vulkan/transpose/tail_unwritten", "BUG 8: partial tiles are not written")),
    KernelRegistration(wrong<&vulkan::run_transpose<shaders::mutant_transpose_no_barrier, 32>>(
        "mutant/vulkan/transpose/no_barrier", "BUG 28: the tile is read before all of it is stored")),
    KernelRegistration(
        wrong<&run_with_width_of_src>("mutant/vulkan/transpose/width_of_src", "BUG 4: dst is given the width of src")),
};

}  // namespace
}  // namespace assay::falsify::transpose_mutants
