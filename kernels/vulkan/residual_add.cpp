// y = x + alpha r: launches residual_add.comp. y shares no memory with x or r (the contract's clause). Two roundings at
// most.
#include "kernels/vulkan/elementwise.hpp"
#include "ops/residual_add.hpp"
#include "shaders/residual_add_vectors.hpp"

namespace assay::vulkan::of_residual_add {
namespace {

void run(const ops::ResidualAddArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(shaders::residual_add_vectors, target, args.m, args.n, static_cast<float>(args.alpha),
             map_tensor(target, args.y), {map_tensor(target, args.x), map_tensor(target, args.r)});
}

std::optional<std::string> refuse(const ops::ResidualAddArgs& args) { return refuse_large(args.x, args.r, args.y); }

const KernelRegistration vectors_kernel{{.id = "residual_add/vulkan/vectors",
                                         .arithmetic = kShaderArithmetic,
                                         .summary = "one pass, 16 bytes an invocation where rows are aligned",
                                         .run = &run_typed<ops::ResidualAddArgs, &run>,
                                         .refuse = &refuse_typed<ops::ResidualAddArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_residual_add
