// Means over tokens: launches mean_pool.comp. y shares no memory with x or lengths (the contract's clause).
// Error: lengths[b] terms in a fixed order and a division, and the flushed subnormals. Reads no padding.
#include "kernels/vulkan/launch.hpp"
#include "ops/mean_pool.hpp"
#include "shaders/mean_pool_stripes.hpp"
#include "shaders/mean_pool_stripes_bf16.hpp"
#include "shaders/mean_pool_stripes_f16.hpp"

namespace assay::vulkan::of_mean_pool {
namespace {

/// Push constants of mean_pool.comp.
struct MeanPoolPush {
  std::uint32_t b, s, h, x_first, x_batch, x_ld, lengths_first, y_first, y_ld;
};

void run(const ops::MeanPoolArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.x), bind(target, args.lengths), bind(target, args.y)};
  const MeanPoolPush push{static_cast<std::uint32_t>(args.b),
                          static_cast<std::uint32_t>(args.s),
                          static_cast<std::uint32_t>(args.h),
                          bindings[0].first,
                          step(args.x, 0),
                          step(args.x, 1),
                          bindings[1].first,
                          bindings[2].first,
                          step(args.y, 0)};
  const Shader& shader = variant(args.x.dtype(), shaders::mean_pool_stripes, shaders::mean_pool_stripes_f16,
                                 shaders::mean_pool_stripes_bf16);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.h, 32), groups(args.b, 1), 1}});
}

std::optional<std::string> refuse(const ops::MeanPoolArgs& args) {
  const Index passes = (args.b + kMaxGroups - 1) / kMaxGroups;
  if (auto why = refuse_long(passes * (args.s / 8 + 10))) return why;
  return refuse_large(args.x, args.lengths, args.y);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "32 columns per workgroup, eight stripes of tokens added in order",
                             .run = &run_typed<ops::MeanPoolArgs, &run>,
                             .refuse = &refuse_typed<ops::MeanPoolArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "mean_pool/vulkan/stripes"),
                                            add(DType::f16, "mean_pool/vulkan/stripes_f16"),
                                            add(DType::bf16, "mean_pool/vulkan/stripes_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_mean_pool
