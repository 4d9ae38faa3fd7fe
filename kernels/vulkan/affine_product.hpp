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

/// One product, ready to dispatch.
struct AffineLaunch {
  AffinePush push{};
  std::array<std::uint32_t, 1> vector{};  ///< specialization: all rows start at multiples of 4 elements
  std::array<StorageBinding, 4> bindings{};
  std::array<std::uint32_t, 3> groups{};
};

inline AffineLaunch plan_affine(const AffineProduct& x, const VulkanDevice& target, Index tile) {
  const bool in_place = x.adds() && x.addend.data() == x.c.data(), apart = x.adds() && !in_place;
  const StorageBinding a = bind(target, x.a), b = bind(target, x.b), c = bind(target, x.c),
                       addend = apart ? bind(target, x.addend) : StorageBinding{};
  return {
      .push = {{static_cast<std::uint32_t>(x.m()), static_cast<std::uint32_t>(x.k()), static_cast<std::uint32_t>(x.n()),
                a.first, step(x.a, 0), b.first, step(x.b, 0), c.first, step(x.c, 0)},
               in_place ? 2U
               : apart  ? 1U
                        : 0U,
               addend.first,
               apart ? step(x.addend, 0) : 0,
               x.scale},
      .vector = {vectors(x.a, a) & vectors(x.b, b) & vectors(x.c, c) & (apart ? vectors(x.addend, addend) : 1U)},
      .bindings = {a, b, c, addend},
      .groups = {groups(x.n(), tile), groups(x.m(), tile), 1}};
}

template <ProductShaders shaders>
void multiply(const AffineProduct& x, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const Shader& shader = shaders.of(x);
  const AffineLaunch launch = plan_affine(x, target, shaders.tile);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = launch.vector,
                   .bindings = launch.bindings,
                   .push = bytes_of(launch.push),
                   .groups = launch.groups});
}

/// Push constants of product.glsl with ADAPTER.
struct AdapterPush {
  AffinePush layer;
  std::uint32_t low_terms = 0, rank = 0, low_first = 0, low_ld = 0, factor_first = 0, factor_ld = 0;
  float low_scale = 1;
};

/// The shaders of one algorithm for a layer in 16 bits and its adapter in float32, by what they compute.
struct AdapterShaders {
  const Shader* adapted = nullptr;  ///< the layer with its adapter, of the format: a product with a second one
  const Shader* low = nullptr;      ///< of an operand of the format and an f32 one
  const Shader* da = nullptr;       ///< of a transposed f32 operand and one of the format
  const Shader* db = nullptr;       ///< of a transposed operand of the format and an f32 one
  Index tile = 16;

  const Shader& of(const AffineProduct& x) const {
    return *(x.has_second() ? adapted : !x.a_transposed ? low : x.a.dtype() == DType::f32 ? da : db);
  }
};

/// Products with an operand in float32, and c = a · b + addend + scale second: the sum of the second product is formed
/// first, scaled in registers, and goes on as that of a · b. All of it is float32; c is rounded once, at the store.
template <AdapterShaders shaders>
void multiply_stored(const AffineProduct& x, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const Shader& shader = shaders.of(x);
  const AffineLaunch launch = plan_affine(x, target, shaders.tile);
  AdapterPush push{.layer = launch.push};
  StorageBinding low, factor;
  std::array<std::uint32_t, 2> vector{launch.vector[0], 0};
  if (x.has_second()) {
    low = bind(target, x.second.a), factor = bind(target, x.second.b);
    vector[1] = vectors(x.second.a, low) & vectors(x.second.b, factor);
    const Index depth = terms_per_turn(shaders.tile);
    push.rank = static_cast<std::uint32_t>(x.second_k());
    push.low_terms = static_cast<std::uint32_t>((x.second_k() + depth - 1) / depth * depth);
    push.low_first = low.first, push.low_ld = step(x.second.a, 0);
    push.factor_first = factor.first, push.factor_ld = step(x.second.b, 0);
    push.low_scale = x.second.scale;
    push.layer.product.k += push.low_terms;
  }
  const std::array bindings{
      launch.bindings[0], launch.bindings[1], launch.bindings[2], launch.bindings[3], low, factor};
  const std::size_t count = x.has_second() ? 6 : 4;
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = std::span(vector).first(x.has_second() ? 2 : 1),
                   .bindings = std::span(bindings).first(count),
                   .push = x.has_second() ? bytes_of(push) : bytes_of(push.layer),
                   .groups = launch.groups});
}

/// Refuses sums of in + r terms that need too many turns: adapters add theirs to those of the layer.
inline std::optional<std::string> refuse_adapted(Index k, Index rank, Index tile) {
  const Index depth = terms_per_turn(tile);
  return refuse_long((k + depth - 1) / depth + (rank + depth - 1) / depth + 1);
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
