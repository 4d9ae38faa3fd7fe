// The launcher of the three matrix products.
#pragma once

#include "kernels/vulkan/launch.hpp"

namespace assay::vulkan {

/// Push constants of product.glsl.
struct ProductPush {
  std::uint32_t m, k, n, a_first, a_ld, b_first, b_ld, c_first, c_ld;
};

/// One product, ready to dispatch.
struct ProductLaunch {
  ProductPush push{};
  std::array<std::uint32_t, 1> vector{};  ///< specialization: rows of A, B and C start at multiples of 4 elements
  std::array<StorageBinding, 3> bindings{};
  std::array<std::uint32_t, 3> groups{};

  void run(const Shader& shader, VulkanDevice& device) const {
    device.dispatch({.name = shader.name,
                     .module = shader.module,
                     .specialization = vector,
                     .bindings = bindings,
                     .push = bytes_of(push),
                     .groups = groups});
  }
};

/// A workgroup computes tile x tile outputs. Args: MatmulArgs, MatmulNtArgs or MatmulTnArgs.
template <class Args>
ProductLaunch plan_product(const Args& args, const VulkanDevice& device, Index tile) {
  const StorageBinding a = bind(device, args.a), b = bind(device, args.b), c = bind(device, args.c);
  return {.push = {static_cast<std::uint32_t>(args.m), static_cast<std::uint32_t>(args.k),
                   static_cast<std::uint32_t>(args.n), a.first, step(args.a, 0), b.first, step(args.b, 0), c.first,
                   step(args.c, 0)},
          .vector = {vectors(args.a, a) & vectors(args.b, b) & vectors(args.c, c)},
          .bindings = {a, b, c},
          .groups = {groups(args.n, tile), groups(args.m, tile), 1}};
}

template <class Args, const Shader& shader, Index tile>
void run_product(const Args& args, Device& device) {
  plan_product(args, vulkan_device(device), tile).run(shader, vulkan_device(device));
}

/// Returns the terms of a sum that a workgroup takes in one turn of its loop.
constexpr Index terms_per_turn(Index tile) { return std::min<Index>(16, 1024 / tile); }

/// Refuses more tiles than every device runs: products do not loop over workgroups.
inline std::optional<std::string> refuse_tiles(Index m, Index k, Index n, Index tile) {
  if (std::max(m, n) > kMaxGroups * tile)
    return "m or n above " + std::to_string(kMaxGroups * tile) + " needs more workgroups than every device runs";
  const Index depth = terms_per_turn(tile);  // the loops inside are unrolled
  return refuse_long((k + depth - 1) / depth + 1);
}

template <class Args, Index tile>
std::optional<std::string> refuse_product(const Args& args) {
  if (auto why = refuse_tiles(args.m, args.k, args.n, tile)) return why;
  return refuse_large(args.a, args.b, args.c);
}

/// Returns the registry entry of a product whose shader reads `storage`; the caller adds the differences.
template <class Args, const Shader& shader, Index tile>
Kernel product_kernel(std::string_view id, std::string_view summary, DType storage = DType::f32) {
  return {.id = id,
          .arithmetic = kShaderArithmetic,
          .storage = storage,
          .summary = summary,
          .run = &run_typed<Args, &run_product<Args, shader, tile>>,
          .refuse = &refuse_typed<Args, &refuse_product<Args, tile>>,
          .automatic_above = kProductVolume};
}

inline constexpr std::string_view kNaive16 = "one output per invocation, 16x16 tiles in shared memory";
inline constexpr std::string_view kTiled64 = "64x64 block, 4x4 outputs in registers, vector loads where aligned";
inline constexpr std::string_view kTiled128 = "128x128 block, 8x8 outputs in registers, vector loads where aligned";

}  // namespace assay::vulkan
