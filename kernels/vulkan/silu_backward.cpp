// dx = dy times the derivative of x sigmoid(x): launches silu_backward.comp. dx shares no memory with x or dy (the
// contract's clause).
#include "kernels/vulkan/elementwise.hpp"
#include "ops/silu_backward.hpp"
#include "shaders/silu_backward_vectors.hpp"

namespace assay::vulkan::of_silu_backward {
namespace {

void run(const ops::SiluBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(shaders::silu_backward_vectors, target, args.m, args.n, 0, map_tensor(target, args.dx),
             {map_tensor(target, args.x), map_tensor(target, args.dy)});
}

std::optional<std::string> refuse(const ops::SiluBackwardArgs& args) { return refuse_large(args.x, args.dy, args.dx); }

const KernelRegistration vectors_kernel{{.id = "silu_backward/vulkan/vectors",
                                         .arithmetic = kShaderArithmetic,
                                         .summary = "one pass, 16 bytes an invocation where rows are aligned",
                                         .run = &run_typed<ops::SiluBackwardArgs, &run>,
                                         .refuse = &refuse_typed<ops::SiluBackwardArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_silu_backward
