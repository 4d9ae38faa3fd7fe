// The launcher of rmsnorm, shared with its mutants.
#pragma once

#include "kernels/vulkan/rows.hpp"
#include "ops/rmsnorm.hpp"

namespace assay::vulkan {

/// Push constants of rmsnorm.comp.
struct RmsnormPush {
  std::uint32_t rows, n, x_first, x_ld, weight_first, y_first, y_ld, rrms_first;
  float eps;
};

template <const Shader& shader>
void run_rmsnorm(const ops::RmsnormArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const View<float> x = f32(args.x), y = f32(args.y);
  const std::array bindings{bind(target, x), bind(target, args.weight), bind(target, y), bind(target, args.rrms)};
  const std::array vector{vectors(x, bindings[0]), vectors(args.weight, bindings[1]), vectors(y, bindings[2])};
  const RmsnormPush push{u32(args.rows),    u32(args.n),       bindings[0].first, step(x, 0),
                         bindings[1].first, bindings[2].first, step(y, 0),        bindings[3].first,
                         static_cast<float>(args.eps)};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.rows, kRowsOfGroup), 1, 1}});
}

inline std::optional<std::string> refuse_rmsnorm(const ops::RmsnormArgs& args) {
  if (auto why = refuse_rows(args.rows, args.n, 2)) return why;
  return refuse_large(f32(args.x), f32(args.y));
}

template <const Shader& shader>
Kernel rmsnorm_row(std::string_view id) {
  return {.op = "rmsnorm",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = "kernels/vulkan/rmsnorm.comp",
          .summary = "64 invocations a row, tree reduction in shared memory; f32 storage alone",
          .run = &run_typed<ops::RmsnormArgs, &run_rmsnorm<shader>>,
          .refuse = &refuse_typed<ops::RmsnormArgs, &refuse_rmsnorm>};
}

}  // namespace assay::vulkan
