// y = x + bias: launches bias_add.comp. y shares no memory with x or bias (the contract's clause). One rounding.
#include "kernels/vulkan/elementwise.hpp"
#include "ops/bias_add.hpp"
#include "shaders/bias_add_vectors.hpp"
#include "shaders/bias_add_vectors_bf16.hpp"
#include "shaders/bias_add_vectors_f16.hpp"

namespace assay::vulkan::of_bias_add {
namespace {

void run(const ops::BiasAddArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(
      variant(args.y.dtype(), shaders::bias_add_vectors, shaders::bias_add_vectors_f16, shaders::bias_add_vectors_bf16),
      target, args.m, args.n, 0, map_tensor(target, args.y),
      {map_tensor(target, args.x), MapTensor{bind(target, args.bias), 0}});
}

std::optional<std::string> refuse(const ops::BiasAddArgs& args) { return refuse_large(args.x, args.bias, args.y); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "one pass, 16 bytes an invocation where rows are aligned",
                             .run = &run_typed<ops::BiasAddArgs, &run>,
                             .refuse = &refuse_typed<ops::BiasAddArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "bias_add/vulkan/vectors"),
                                            add(DType::f16, "bias_add/vulkan/vectors_f16"),
                                            add(DType::bf16, "bias_add/vulkan/vectors_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_bias_add
