// Products with a scale and an addend (AFFINE of product.glsl), launched from their back-end-independent description.
#pragma once

#include "kernels/affine_product.hpp"
#include "kernels/vulkan/product.hpp"

namespace assay::vulkan {

/// Push constants of product.glsl with AFFINE.
struct AffinePush {
  ProductPush product;
  std::uint32_t add, addend_first, addend_ld;
  float scale;
};

/// The shaders of one algorithm by transposed operand: none, B, A. Null: the operation does not use the form.
struct ProductShaders {
  const Shader* plain = nullptr;
  const Shader* b_transposed = nullptr;
  const Shader* a_transposed = nullptr;
  Index tile = 16;

  const Shader& of(const AffineProduct& x) const {
    return *(x.a_transposed ? a_transposed : x.b_transposed ? b_transposed : plain);
  }
};

template <ProductShaders shaders>
void multiply(const AffineProduct& x, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const Shader& shader = shaders.of(x);
  const bool in_place = x.adds() && x.addend.data() == x.c.data(), apart = x.adds() && !in_place;
  const StorageBinding a = bind(target, x.a), b = bind(target, x.b), c = bind(target, x.c),
                       addend = apart ? bind(target, x.addend) : StorageBinding{};
  const AffinePush push{
      {static_cast<std::uint32_t>(x.m()), static_cast<std::uint32_t>(x.k()), static_cast<std::uint32_t>(x.n()), a.first,
       step(x.a, 0), b.first, step(x.b, 0), c.first, step(x.c, 0)},
      in_place ? 2U
      : apart  ? 1U
               : 0U,
      addend.first,
      apart ? step(x.addend, 0) : 0,
      x.scale};
  const std::array vector{vectors(x.a, a) & vectors(x.b, b) & vectors(x.c, c) &
                          (apart ? vectors(x.addend, addend) : 1U)};
  const std::array bindings{a, b, c, addend};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(x.n(), shaders.tile), groups(x.m(), shaders.tile), 1}});
}

/// Returns the registry entry of an operation built from tiled products whose shaders read `storage`; `refuse` names
/// the tensors that may be too large.
template <class Args, void (*run)(const Args&, Device&), std::optional<std::string> (*refuse)(const Args&), Index tile>
Kernel composed_kernel(std::string_view id, std::string_view summary, DType storage = DType::f32) {
  return {.id = id,
          .arithmetic = kShaderArithmetic,
          .storage = storage,
          .summary = summary,
          .run = &run_typed<Args, run>,
          .refuse = [](const Call& call) -> std::optional<std::string> {
            const Args args = Args::unpack(call);
            const ProductExtents largest = largest_products(args);
            if (auto why = refuse_tiles(largest.m, largest.k, largest.n, tile)) return why;
            return refuse(args);
          },
          .automatic_above = kProductVolume};
}

}  // namespace assay::vulkan
