// y = x sigmoid(x): launches silu.comp. y shares no memory with x (the contract's clause). Vulkan's exp errs by 3 +
// 2|x| units.
#include "kernels/vulkan/elementwise.hpp"
#include "ops/silu.hpp"
#include "shaders/silu_vectors.hpp"

namespace assay::vulkan::of_silu {
namespace {

void run(const ops::SiluArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<1>(shaders::silu_vectors, target, args.m, args.n, 0, map_tensor(target, args.y),
             {map_tensor(target, args.x)});
}

std::optional<std::string> refuse(const ops::SiluArgs& args) { return refuse_large(args.x, args.y); }

const KernelRegistration vectors_kernel{{.id = "silu/vulkan/vectors",
                                         .arithmetic = kShaderArithmetic,
                                         .summary = "one pass, 16 bytes an invocation where rows are aligned",
                                         .run = &run_typed<ops::SiluArgs, &run>,
                                         .refuse = &refuse_typed<ops::SiluArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_silu
