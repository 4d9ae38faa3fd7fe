// y = x + bias: launches bias_add.comp. y shares no memory with x or bias (the contract's clause). One rounding.
#include "kernels/vulkan/elementwise.hpp"
#include "ops/bias_add.hpp"
#include "shaders/bias_add_vectors.hpp"

namespace assay::vulkan::of_bias_add {
namespace {

void run(const ops::BiasAddArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(shaders::bias_add_vectors, target, args.m, args.n, 0, map_tensor(target, args.y),
             {map_tensor(target, args.x), MapTensor{bind(target, args.bias), 0}});
}

std::optional<std::string> refuse(const ops::BiasAddArgs& args) { return refuse_large(args.x, args.bias, args.y); }

const KernelRegistration vectors_kernel{{.id = "bias_add/vulkan/vectors",
                                         .arithmetic = kShaderArithmetic,
                                         .summary = "one pass, 16 bytes an invocation where rows are aligned",
                                         .run = &run_typed<ops::BiasAddArgs, &run>,
                                         .refuse = &refuse_typed<ops::BiasAddArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_bias_add
