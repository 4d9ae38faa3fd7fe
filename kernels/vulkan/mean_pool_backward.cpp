// The gradient of means over tokens: launches mean_pool_backward.comp. dx shares no memory with dy or lengths (the
// contract's clause). Error: one division, and the flushed subnormals.
#include "kernels/vulkan/launch.hpp"
#include "ops/mean_pool_backward.hpp"
#include "shaders/mean_pool_backward_rows.hpp"
#include "shaders/mean_pool_backward_rows_bf16.hpp"
#include "shaders/mean_pool_backward_rows_f16.hpp"

namespace assay::vulkan::of_mean_pool_backward {
namespace {

/// Push constants of mean_pool_backward.comp.
struct MeanPoolBackwardPush {
  std::uint32_t b, s, h, lengths_first, dy_first, dy_ld, dx_first, dx_batch, dx_ld;
};

void run(const ops::MeanPoolBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.lengths), bind(target, args.dy), bind(target, args.dx)};
  const MeanPoolBackwardPush push{static_cast<std::uint32_t>(args.b),
                                  static_cast<std::uint32_t>(args.s),
                                  static_cast<std::uint32_t>(args.h),
                                  bindings[0].first,
                                  bindings[1].first,
                                  step(args.dy, 0),
                                  bindings[2].first,
                                  step(args.dx, 0),
                                  step(args.dx, 1)};
  const bool vectors = push.dx_first % 4 == 0 && push.dx_batch % 4 == 0 && push.dx_ld % 4 == 0;
  const std::array<std::uint32_t, 1> constants{vectors};
  // Each invocation covers eight rows: one division for eight stores.
  const Shader& shader = variant(args.dx.dtype(), shaders::mean_pool_backward_rows,
                                 shaders::mean_pool_backward_rows_f16, shaders::mean_pool_backward_rows_bf16);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.h, vectors ? 128 : 32), groups(args.s, 64), groups(args.b, 1)}});
}

std::optional<std::string> refuse(const ops::MeanPoolBackwardArgs& args) {
  const Index passes = (args.b + kMaxGroups - 1) / kMaxGroups;
  if (auto why = refuse_long(passes * 16)) return why;
  return refuse_large(args.lengths, args.dy, args.dx);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "four columns per invocation, one division for eight rows",
                             .run = &run_typed<ops::MeanPoolBackwardArgs, &run>,
                             .refuse = &refuse_typed<ops::MeanPoolBackwardArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "mean_pool_backward/vulkan/rows"),
                                            add(DType::f16, "mean_pool_backward/vulkan/rows_f16"),
                                            add(DType::bf16, "mean_pool_backward/vulkan/rows_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_mean_pool_backward
