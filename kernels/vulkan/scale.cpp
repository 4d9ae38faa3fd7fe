// y = alpha x: launches scale.comp. y shares no memory with x (the contract's clause). One rounding.
#include "kernels/vulkan/elementwise.hpp"
#include "ops/scale.hpp"
#include "shaders/scale_vectors.hpp"

namespace assay::vulkan::of_scale {
namespace {

void run(const ops::ScaleArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<1>(shaders::scale_vectors, target, args.m, args.n, static_cast<float>(args.alpha), map_tensor(target, args.y),
             {map_tensor(target, args.x)});
}

std::optional<std::string> refuse(const ops::ScaleArgs& args) { return refuse_large(args.x, args.y); }

const KernelRegistration vectors_kernel{{.id = "scale/vulkan/vectors",
                                         .arithmetic = kShaderArithmetic,
                                         .summary = "one pass, 16 bytes an invocation where rows are aligned",
                                         .run = &run_typed<ops::ScaleArgs, &run>,
                                         .refuse = &refuse_typed<ops::ScaleArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_scale
