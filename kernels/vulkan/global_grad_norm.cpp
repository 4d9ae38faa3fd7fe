// Euclidean norm of a gradient: launches global_grad_norm.comp and global_grad_norm_total.comp.
#include "kernels/vulkan/global_grad_norm.hpp"
#include "ops/global_grad_norm.hpp"

namespace assay::vulkan::of_global_grad_norm {
namespace {

void run(const ops::GlobalGradNormArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  dispatch_norm(target, args.n, bind(target, args.g), bind(target, args.norm));
}

std::optional<std::string> refuse(const ops::GlobalGradNormArgs& args) { return refuse_large(args.g); }

const KernelRegistration two_stages{{.id = "global_grad_norm/vulkan/two_stages",
                                     .arithmetic = kShaderArithmetic,
                                     .summary = "partial sums of up to 1024 workgroups, added by one",
                                     .run = &run_typed<ops::GlobalGradNormArgs, &run>,
                                     .refuse = &refuse_typed<ops::GlobalGradNormArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_global_grad_norm
