// The launcher of gemv, shared with its mutants.
#pragma once

#include "kernels/vulkan/launch.hpp"
#include "ops/gemv.hpp"

namespace assay::vulkan {

/// Push constants of gemv.comp.
struct GemvPush {
  std::uint32_t m, k, a_first, a_ld, x_first, x_stride, y_first, y_stride;
};

/// A workgroup computes `rows` outputs at a time.
template <const Shader& shader, Index rows>
void run_gemv(const ops::GemvArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const StorageBinding a = bind(target, args.a), x = bind(target, args.x), y = bind(target, args.y);
  const GemvPush push{static_cast<std::uint32_t>(args.m),
                      static_cast<std::uint32_t>(args.k),
                      a.first,
                      step(args.a, 0),
                      x.first,
                      step(args.x, 0),
                      y.first,
                      step(args.y, 0)};
  const std::array vector{vectors(args.a, a), vectors(args.x, x)};
  const std::array bindings{a, x, y};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.m, rows), 1, 1}});
}

/// One turn per `terms` terms, and eight for the reduction, for every row that an invocation takes.
template <Index rows, Index terms>
std::optional<std::string> refuse_gemv(const ops::GemvArgs& args) {
  const Index passes = (args.m + rows * kMaxGroups - 1) / (rows * kMaxGroups);
  if (auto why = refuse_long(passes * ((args.k + terms - 1) / terms + 10))) return why;
  return refuse_large(args.a, args.x, args.y);
}

}  // namespace assay::vulkan
