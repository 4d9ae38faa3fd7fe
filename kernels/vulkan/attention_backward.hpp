// The launcher of attention_backward, shared with its mutants.
#pragma once

#include "kernels/vulkan/heads.hpp"
#include "ops/attention_backward.hpp"
#include "shaders/attention_backward_128.hpp"
#include "shaders/attention_backward_256.hpp"
#include "shaders/attention_backward_64.hpp"
#include "shaders/attention_backward_kv_128.hpp"
#include "shaders/attention_backward_kv_256.hpp"
#include "shaders/attention_backward_kv_64.hpp"
#include "shaders/attention_backward_rows.hpp"

namespace assay::vulkan {

/// Push constants of attention_backward_rows.comp, attention_backward.comp and attention_backward_kv.comp.
struct AttentionRowsPush {
  HeadTensor y, dy;
  std::uint32_t logsumexp_first, logsumexp_batch, logsumexp_head, lengths_first, starts_first;
  std::uint32_t rows, s, t, kv_heads, group, d, causal;
};
struct AttentionDqPush {
  HeadTensor q, k, v, dy, dq;
  std::uint32_t rows, group, d;
  float scale;
};
struct AttentionDkvPush {
  HeadTensor q, k, v, dy, dk, dv;
  std::uint32_t rows, t, group, d;
  float scale;
};

/// The shaders of one call.
struct AttentionBackwardShaders {
  const Shader &rows, &dq, &dkv;
};

/// What a row of queries has to hold for the gradients: logsumexp, dy · y and how many keys it sees, in four words.
inline constexpr std::size_t kBytesOfRow = 16;

inline void launch_attention_backward(const AttentionBackwardShaders& shaders, const ops::AttentionBackwardArgs& args,
                                      VulkanDevice& target) {
  const View<float> of[] = {f32(args.q),  f32(args.k),  f32(args.v),  f32(args.y),
                            f32(args.dy), f32(args.dq), f32(args.dk), f32(args.dv)};
  StorageBinding bound[8];
  HeadTensor tensor[8];
  bool aligned = true;
  for (int n = 0; n < 8; ++n) {
    bound[n] = bind(target, of[n]);
    tensor[n] = head_tensor(of[n], bound[n]);
    aligned = aligned && aligned_heads(tensor[n]);
  }
  const auto& [q, k, v, y, dy, dq, dk, dv] = tensor;
  const std::array<std::uint32_t, 1> constants{aligned};
  const Index all = args.batch * args.heads * args.s;
  const std::uint32_t group = u32(args.heads / args.kv_heads), rows = u32(args.s) * group;
  Buffer scratch;
  StorageBinding described;
  if (all > 0) {
    scratch = target.allocate(static_cast<std::size_t>(all) * kBytesOfRow);
    described = target.bind(scratch.address(), scratch.bytes());
    const StorageBinding logsumexp = bind(target, args.logsumexp), lengths = bind(target, args.lengths),
                         starts = bind(target, args.starts);
    const AttentionRowsPush push{y,
                                 dy,
                                 logsumexp.first,
                                 step(args.logsumexp, 0),
                                 step(args.logsumexp, 1),
                                 lengths.first,
                                 starts.first,
                                 u32(all),
                                 u32(args.s),
                                 u32(args.t),
                                 u32(args.kv_heads),
                                 group,
                                 u32(args.d),
                                 args.causal != 0};
    const std::array bindings{bound[3], bound[4], logsumexp, lengths, starts, described};
    target.dispatch({.name = shaders.rows.name,
                     .module = shaders.rows.module,
                     .specialization = constants,
                     .bindings = bindings,
                     .push = bytes_of(push),
                     .groups = {groups(all, kRowsOfGroup), 1, 1}});
    const AttentionDqPush dq_push{q, k, v, dy, dq, rows, group, u32(args.d), static_cast<float>(args.scale)};
    const std::array dq_bindings{bound[0], bound[1], bound[2], bound[4], described, bound[5]};
    target.dispatch({.name = shaders.dq.name,
                     .module = shaders.dq.module,
                     .specialization = constants,
                     .bindings = dq_bindings,
                     .push = bytes_of(dq_push),
                     .groups = {u32(tiles_of(rows)), u32(args.batch), u32(args.kv_heads)}});
  }
  const AttentionDkvPush push{
      q, k, v, dy, dk, dv, rows, u32(args.t), group, u32(args.d), static_cast<float>(args.scale)};
  const std::array bindings{bound[0], bound[1], bound[2], bound[4], described, bound[6], bound[7]};
  target.dispatch({.name = shaders.dkv.name,
                   .module = shaders.dkv.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {u32(tiles_of(args.t)), u32(args.batch), u32(args.kv_heads)}});
}

/// The shaders of heads of up to 64 elements are what mutants replace.
template <const Shader& rows, const Shader& dq, const Shader& dkv>
void run_attention_backward(const ops::AttentionBackwardArgs& args, Device& device) {
  launch_attention_backward(
      args.d <= 64 ? AttentionBackwardShaders{rows, dq, dkv}
      : args.d <= 128
          ? AttentionBackwardShaders{rows, shaders::attention_backward_128, shaders::attention_backward_kv_128}
          : AttentionBackwardShaders{rows, shaders::attention_backward_256, shaders::attention_backward_kv_256},
      args, vulkan_device(device));
}

inline std::optional<std::string> refuse_attention_backward(const ops::AttentionBackwardArgs& args) {
  const Index rows = args.s * (args.heads / args.kv_heads),
              of_tile = 1 + 2 * product_turns(args.d) + 2 * sum_turns(args.d);
  if (auto why = refuse_blocks(rows)) return why;
  if (auto why = refuse_batch(args.batch)) return why;
  if (auto why = refuse_long(std::max(tiles_of(rows), tiles_of(args.t)) * of_tile)) return why;
  if (auto why = refuse_rows(args.batch * args.heads * args.s, args.d, 1)) return why;
  return refuse_large(f32(args.q), f32(args.k), f32(args.v), f32(args.y), args.logsumexp, f32(args.dy), f32(args.dq),
                      f32(args.dk), f32(args.dv));
}

template <const Shader& rows = shaders::attention_backward_rows, const Shader& dq = shaders::attention_backward_64,
          const Shader& dkv = shaders::attention_backward_kv_64>
Kernel attention_backward_tiled(std::string_view id) {
  return {.op = "attention_backward",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = "kernels/vulkan/attention_backward.comp",
          .summary = "64 queries by 64 keys, scores computed again: dq by queries, dk and dv by keys, no atomics",
          .run = &run_typed<ops::AttentionBackwardArgs, &run_attention_backward<rows, dq, dkv>>,
          .refuse = &refuse_typed<ops::AttentionBackwardArgs, &refuse_attention_backward>,
          .automatic_above = kProductVolume};
}

}  // namespace assay::vulkan
