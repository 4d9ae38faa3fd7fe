// dst += alpha src: launches accumulate.comp. dst shares no memory with src (the contract's clause). Two roundings at
// most.
#include "kernels/vulkan/elementwise.hpp"
#include "ops/accumulate.hpp"
#include "shaders/accumulate_vectors.hpp"

namespace assay::vulkan::of_accumulate {
namespace {

void run(const ops::AccumulateArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(shaders::accumulate_vectors, target, args.m, args.n, static_cast<float>(args.alpha),
             map_tensor(target, args.dst), {map_tensor(target, args.dst), map_tensor(target, args.src)});
}

std::optional<std::string> refuse(const ops::AccumulateArgs& args) { return refuse_large(args.dst, args.src); }

const KernelRegistration vectors_kernel{{.id = "accumulate/vulkan/vectors",
                                         .arithmetic = kShaderArithmetic,
                                         .summary = "one pass, 16 bytes an invocation where rows are aligned",
                                         .run = &run_typed<ops::AccumulateArgs, &run>,
                                         .refuse = &refuse_typed<ops::AccumulateArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_accumulate
