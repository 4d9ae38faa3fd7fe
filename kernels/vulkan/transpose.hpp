// The launcher of transpose, shared with its mutants.
#pragma once

#include "kernels/vulkan/launch.hpp"
#include "ops/transpose.hpp"

namespace assay::vulkan {

/// Push constants of transpose.comp.
struct TransposePush {
  std::uint32_t m, n, src_first, src_ld, dst_first, dst_ld;
};

inline TransposePush plan_transpose(const ops::TransposeArgs& args, const StorageBinding& src,
                                    const StorageBinding& dst) {
  return {static_cast<std::uint32_t>(args.m),
          static_cast<std::uint32_t>(args.n),
          src.first,
          step(args.src, 0),
          dst.first,
          step(args.dst, 0)};
}

/// A workgroup moves `rows` x 32 elements at a time.
template <const Shader& shader, Index rows>
void run_transpose(const ops::TransposeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.src), bind(target, args.dst)};
  const TransposePush push = plan_transpose(args, bindings[0], bindings[1]);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 32), groups(args.m, rows), 1}});
}

inline std::optional<std::string> refuse_transpose(const ops::TransposeArgs& args) {
  return refuse_large(args.src, args.dst);
}

}  // namespace assay::vulkan
