// The launcher of attention_decode.
#include "kernels/vulkan/rows.hpp"
#include "ops/attention_decode.hpp"
#include "shaders/attention_decode_tiles.hpp"
#include "shaders/attention_decode_tiles_bf16.hpp"
#include "shaders/attention_decode_tiles_f16.hpp"

namespace assay::vulkan::of_attention_decode {
namespace {

using ops::AttentionDecodeArgs;

/// Heads and places that attention_decode.comp takes at a time.
constexpr Index kDecodeHeads = 4, kDecodePlaces = 64;

/// Push constants of attention_decode.comp.
struct DecodePush {
  std::uint32_t group, chunks, d;
  float scale;
  std::uint32_t lengths_first;
  std::uint32_t q_first, q_batch, q_head, k_first, k_batch, k_head, v_first, v_batch, v_head;
  std::uint32_t k_cache_first, k_cache_batch, k_cache_place, k_cache_head;
  std::uint32_t v_cache_first, v_cache_batch, v_cache_place, v_cache_head;
  std::uint32_t y_first, y_batch, y_head;
};

/// Returns true if every head starts at a multiple of four elements.
bool heads_aligned(const StorageView& view, const StorageBinding& binding) {
  bool aligned = binding.first % 4 == 0;
  for (int axis = 0; axis + 1 < view.rank(); ++axis) aligned = aligned && step(view, axis) % 4 == 0;
  return aligned;
}

template <const Shader& shader>
void run(const AttentionDecodeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const StorageView &q = args.q, &k = args.k, &v = args.v, &k_cache = args.k_cache, &v_cache = args.v_cache,
                    &y = args.y;
  const std::array bindings{bind(target, q),       bind(target, k),       bind(target, v), bind(target, args.lengths),
                            bind(target, k_cache), bind(target, v_cache), bind(target, y)};
  const std::array<std::uint32_t, 1> aligned{heads_aligned(q, bindings[0]) && heads_aligned(k, bindings[1]) &&
                                             heads_aligned(v, bindings[2]) && heads_aligned(k_cache, bindings[4]) &&
                                             heads_aligned(v_cache, bindings[5]) && heads_aligned(y, bindings[6])};
  const Index group = args.heads / args.kv_heads, chunks = (group + kDecodeHeads - 1) / kDecodeHeads;
  const DecodePush push{.group = u32(group),
                        .chunks = u32(chunks),
                        .d = u32(args.d),
                        .scale = static_cast<float>(args.scale),
                        .lengths_first = bindings[3].first,
                        .q_first = bindings[0].first,
                        .q_batch = step(q, 0),
                        .q_head = step(q, 1),
                        .k_first = bindings[1].first,
                        .k_batch = step(k, 0),
                        .k_head = step(k, 1),
                        .v_first = bindings[2].first,
                        .v_batch = step(v, 0),
                        .v_head = step(v, 1),
                        .k_cache_first = bindings[4].first,
                        .k_cache_batch = step(k_cache, 0),
                        .k_cache_place = step(k_cache, 1),
                        .k_cache_head = step(k_cache, 2),
                        .v_cache_first = bindings[5].first,
                        .v_cache_batch = step(v_cache, 0),
                        .v_cache_place = step(v_cache, 1),
                        .v_cache_head = step(v_cache, 2),
                        .y_first = bindings[6].first,
                        .y_batch = step(y, 0),
                        .y_head = step(y, 1)};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = aligned,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {u32(args.kv_heads * chunks), u32(args.batch), 1}});
}

std::optional<std::string> refuse(const AttentionDecodeArgs& args) {
  if (auto why = refuse_batch(args.batch)) return why;
  // Iterations per tile: elements of keys, steps of two reductions, heads, values. Outside the tiles: the query, heads
  // and slots.
  Index width = 8;
  while (4 * width < args.d) width *= 2;
  const Index elements = (args.d + 7) / 8, places = (kDecodePlaces * width + 127) / 128;
  const Index tile = elements * (1 + kDecodeHeads) + places * (1 + kDecodeHeads) + 3 * kDecodeHeads + 10;
  if (auto why = refuse_long((args.capacity + kDecodePlaces - 1) / kDecodePlaces * (tile + 1) + 128)) return why;
  return refuse_large(args.q, args.k, args.v, args.lengths, args.k_cache, args.v_cache, args.y);
}

constexpr Arithmetic kTilesOfPlaces = [] {
  Arithmetic arithmetic = kShaderArithmetic;
  arithmetic.online_tile = static_cast<int>(kDecodePlaces);
  return arithmetic;
}();

template <const Shader& shader>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = kTilesOfPlaces,
       .storage = storage,
       .summary = "a workgroup for up to four heads that share keys and values, online softmax by tiles of 64 places",
       .run = &run_typed<AttentionDecodeArgs, &run<shader>>,
       .refuse = &refuse_typed<AttentionDecodeArgs, &refuse>});
}

const KernelRegistration registrations[] = {
    add<shaders::attention_decode_tiles>(DType::f32, "attention_decode/vulkan/tiles"),
    add<shaders::attention_decode_tiles_f16>(DType::f16, "attention_decode/vulkan/tiles_f16"),
    add<shaders::attention_decode_tiles_bf16>(DType::bf16, "attention_decode/vulkan/tiles_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_attention_decode
