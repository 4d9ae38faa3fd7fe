// The launchers of products with a matrix in NF4 codes.
#pragma once

#include <tuple>

#include "kernels/vulkan/nf4.hpp"
#include "kernels/vulkan/product.hpp"

namespace assay::vulkan {

/// Push constants of product.glsl with B_NF4, and of nf4_matmul_nt_gemv.comp. b addresses the codes, in words.
struct Nf4ProductPush {
  ProductPush product;
  std::uint32_t absmax_first, absmax_ld, w_k;
  Nf4Codebook codebook;
};

/// A workgroup computes tile x tile outputs, or four outputs of a row for tile = 0 (nf4_matmul_nt_gemv.comp).
template <class Args, const Shader& shader, Index tile>
void run_nf4_product(const Args& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const auto [a, c, terms] = [&] {
    if constexpr (requires { args.x; }) return std::tuple{args.x, args.y, args.k};
    else return std::tuple{args.dy, args.dx, args.n};
  }();
  const std::array bindings{bind(target, a), bind(target, args.codes), bind(target, c), bind(target, args.absmax)};
  const Nf4ProductPush push{
      {static_cast<std::uint32_t>(args.m), static_cast<std::uint32_t>(terms), static_cast<std::uint32_t>(c.dim(1)),
       bindings[0].first, step(a, 0), bindings[1].first, word_step(args.codes), bindings[2].first, step(c, 0)},
      bindings[3].first,
      step(args.absmax, 0),
      static_cast<std::uint32_t>(args.k),
      nf4_codebook()};
  const bool gemv = tile == 0;
  const std::array constants{vectors(a, bindings[0]) & (gemv ? 1U : vectors(c, bindings[2]))};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(c.dim(1), gemv ? 4 : tile), groups(args.m, gemv ? 1 : tile), 1}});
}

template <class Args, Index tile>
std::optional<std::string> refuse_nf4_product(const Args& args) {
  const auto [terms, columns] = [&] {
    if constexpr (requires { args.x; }) return std::pair{args.k, args.n};
    else return std::pair{args.n, args.k};
  }();
  if (auto why = refuse_tiles(args.m, terms, columns, tile)) return why;
  if constexpr (requires { args.x; }) return refuse_large(args.x, args.codes, args.absmax, args.y);
  else return refuse_large(args.dy, args.codes, args.absmax, args.dx);
}

/// Returns the registry entry of a tiled product; the caller adds the differences.
template <class Args, void (*run)(const Args&, Device&), Index tile = 16>
Kernel nf4_product_kernel(std::string_view id, std::string_view summary) {
  return {.id = id,
          .arithmetic = kShaderArithmetic,
          .summary = summary,
          .run = &run_typed<Args, run>,
          .refuse = &refuse_typed<Args, &refuse_nf4_product<Args, tile>>,
          .automatic_above = kProductVolume};
}

/// Largest number of rows of X for which W is read once per row rather than tiled.
inline constexpr Index kNf4FewRows = 4;

template <class Args, const Shader& gemv, const Shader& tiled>
void run_nf4_by_rows(const Args& args, Device& device) {
  if (args.m <= kNf4FewRows) run_nf4_product<Args, gemv, 0>(args, device);
  else run_nf4_product<Args, tiled, 64>(args, device);
}

}  // namespace assay::vulkan
