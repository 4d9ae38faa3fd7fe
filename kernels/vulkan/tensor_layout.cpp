// dst = src between any two layouts: launches tensor_layout.comp. src and dst share no memory, and dst's elements do
// not overlap (the contract's clauses). Copies bits.
#include "ops/tensor_layout.hpp"

#include "kernels/vulkan/launch.hpp"
#include "shaders/tensor_layout_strided.hpp"

namespace assay::vulkan::of_tensor_layout {
namespace {

using ops::TensorLayoutArgs;

/// Push constants of tensor_layout.comp.
struct TensorLayoutPush {
  std::uint32_t m, n, src_first, src_row, src_column, dst_first, dst_row, dst_column;
};

/// Exchanges the axes if dst's columns are further apart than its rows, so that writes run along memory.
void run(const TensorLayoutArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.src), bind(target, args.dst)};
  const bool exchange = args.dst.stride(1) > args.dst.stride(0);
  const auto from = exchange ? args.src.transposed() : args.src;
  const auto to = exchange ? args.dst.transposed() : args.dst;
  const TensorLayoutPush push{static_cast<std::uint32_t>(to.dim(0)),
                              static_cast<std::uint32_t>(to.dim(1)),
                              bindings[0].first,
                              step(from, 0),
                              step(from, 1),
                              bindings[1].first,
                              step(to, 0),
                              step(to, 1)};
  target.dispatch({.name = shaders::tensor_layout_strided.name,
                   .module = shaders::tensor_layout_strided.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(push.n, 32), groups(push.m, 8), 1}});
}

std::optional<std::string> refuse(const TensorLayoutArgs& args) { return refuse_large(args.src, args.dst); }

const KernelRegistration strided{{.id = "tensor_layout/vulkan/strided",
                                  .summary = "one element per invocation, along the destination's memory",
                                  .run = &run_typed<TensorLayoutArgs, &run>,
                                  .refuse = &refuse_typed<TensorLayoutArgs, &refuse>,
                                  .automatic_above = kNeverAutomatic}};

}  // namespace
}  // namespace assay::vulkan::of_tensor_layout
