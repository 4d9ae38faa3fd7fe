// y = x + alpha r: launches residual_add.comp. y shares no memory with x or r (the contract's clause). Two roundings at
// most.
#include "kernels/vulkan/elementwise.hpp"
#include "ops/residual_add.hpp"
#include "shaders/residual_add_vectors.hpp"
#include "shaders/residual_add_vectors_bf16.hpp"
#include "shaders/residual_add_vectors_f16.hpp"

namespace assay::vulkan::of_residual_add {
namespace {

void run(const ops::ResidualAddArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(variant(args.y.dtype(), shaders::residual_add_vectors, shaders::residual_add_vectors_f16,
                     shaders::residual_add_vectors_bf16),
             target, args.m, args.n, static_cast<float>(args.alpha), map_tensor(target, args.y),
             {map_tensor(target, args.x), map_tensor(target, args.r)});
}

std::optional<std::string> refuse(const ops::ResidualAddArgs& args) { return refuse_large(args.x, args.r, args.y); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "one pass, 16 bytes an invocation where rows are aligned",
                             .run = &run_typed<ops::ResidualAddArgs, &run>,
                             .refuse = &refuse_typed<ops::ResidualAddArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "residual_add/vulkan/vectors"),
                                            add(DType::f16, "residual_add/vulkan/vectors_f16"),
                                            add(DType::bf16, "residual_add/vulkan/vectors_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_residual_add
