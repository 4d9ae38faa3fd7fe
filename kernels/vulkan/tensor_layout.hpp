// The launcher of tensor_layout, shared with its mutants.
#pragma once

#include <utility>

#include "kernels/vulkan/launch.hpp"
#include "ops/tensor_layout.hpp"

namespace assay::vulkan {

/// Push constants of tensor_layout.comp.
struct TensorLayoutPush {
  std::uint32_t m, n, src_first, src_row, src_column, dst_first, dst_row, dst_column;
};

/// Axes are exchanged where dst's columns are further apart than its rows, so that writes run along memory.
inline TensorLayoutPush plan_tensor_layout(const ops::TensorLayoutArgs& args, const StorageBinding& src,
                                           const StorageBinding& dst) {
  const bool exchange = args.dst.stride(1) > args.dst.stride(0);
  const auto from = exchange ? args.src.transposed() : args.src;
  const auto to = exchange ? args.dst.transposed() : args.dst;
  return {static_cast<std::uint32_t>(to.dim(0)),
          static_cast<std::uint32_t>(to.dim(1)),
          src.first,
          step(from, 0),
          step(from, 1),
          dst.first,
          step(to, 0),
          step(to, 1)};
}

template <const Shader& shader>
void run_tensor_layout(const ops::TensorLayoutArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.src), bind(target, args.dst)};
  const TensorLayoutPush push = plan_tensor_layout(args, bindings[0], bindings[1]);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(push.n, 32), groups(push.m, 8), 1}});
}

inline std::optional<std::string> refuse_tensor_layout(const ops::TensorLayoutArgs& args) {
  return refuse_large(args.src, args.dst);
}

}  // namespace assay::vulkan
