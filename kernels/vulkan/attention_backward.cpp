// Gradients of attention: launches attention_backward_rows.comp, attention_backward.comp and
// attention_backward_kv.comp.
#include "kernels/vulkan/heads.hpp"
#include "ops/attention_backward.hpp"
#include "shaders/attention_backward_128.hpp"
#include "shaders/attention_backward_128_bf16.hpp"
#include "shaders/attention_backward_128_f16.hpp"
#include "shaders/attention_backward_256.hpp"
#include "shaders/attention_backward_256_bf16.hpp"
#include "shaders/attention_backward_256_f16.hpp"
#include "shaders/attention_backward_64.hpp"
#include "shaders/attention_backward_64_bf16.hpp"
#include "shaders/attention_backward_64_f16.hpp"
#include "shaders/attention_backward_kv_128.hpp"
#include "shaders/attention_backward_kv_128_bf16.hpp"
#include "shaders/attention_backward_kv_128_f16.hpp"
#include "shaders/attention_backward_kv_256.hpp"
#include "shaders/attention_backward_kv_256_bf16.hpp"
#include "shaders/attention_backward_kv_256_f16.hpp"
#include "shaders/attention_backward_kv_64.hpp"
#include "shaders/attention_backward_kv_64_bf16.hpp"
#include "shaders/attention_backward_kv_64_f16.hpp"
#include "shaders/attention_backward_rows.hpp"
#include "shaders/attention_backward_rows_bf16.hpp"
#include "shaders/attention_backward_rows_f16.hpp"

namespace assay::vulkan::of_attention_backward {
namespace {

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

/// The shaders of one storage format, for heads of up to 64, 128 and 256 elements.
struct AttentionBackwardShaders {
  const Shader &rows, &dq_64, &dq_128, &dq_256, &dkv_64, &dkv_128, &dkv_256;
};

/// Four words per row of queries for the gradients: logsumexp, dy · y and the number of keys that the row sees.
constexpr std::size_t kBytesOfRow = 16;

template <AttentionBackwardShaders use>
void run(const ops::AttentionBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const Shader& to_queries = args.d <= 64 ? use.dq_64 : args.d <= 128 ? use.dq_128 : use.dq_256;
  const Shader& to_keys = args.d <= 64 ? use.dkv_64 : args.d <= 128 ? use.dkv_128 : use.dkv_256;
  const StorageView of[] = {args.q, args.k, args.v, args.y, args.dy, args.dq, args.dk, args.dv};
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
    target.dispatch({.name = use.rows.name,
                     .module = use.rows.module,
                     .specialization = constants,
                     .bindings = bindings,
                     .push = bytes_of(push),
                     .groups = {groups(all, kRowsOfGroup), 1, 1}});
    const AttentionDqPush dq_push{q, k, v, dy, dq, rows, group, u32(args.d), static_cast<float>(args.scale)};
    const std::array dq_bindings{bound[0], bound[1], bound[2], bound[4], described, bound[5]};
    target.dispatch({.name = to_queries.name,
                     .module = to_queries.module,
                     .specialization = constants,
                     .bindings = dq_bindings,
                     .push = bytes_of(dq_push),
                     .groups = {u32(tiles_of(rows)), u32(args.batch), u32(args.kv_heads)}});
  }
  const AttentionDkvPush push{
      q, k, v, dy, dk, dv, rows, u32(args.t), group, u32(args.d), static_cast<float>(args.scale)};
  const std::array bindings{bound[0], bound[1], bound[2], bound[4], described, bound[6], bound[7]};
  target.dispatch({.name = to_keys.name,
                   .module = to_keys.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {u32(tiles_of(args.t)), u32(args.batch), u32(args.kv_heads)}});
}

std::optional<std::string> refuse(const ops::AttentionBackwardArgs& args) {
  const Index rows = args.s * (args.heads / args.kv_heads),
              of_tile = 1 + 2 * product_iterations(args.d) + 2 * sum_iterations(args.d);
  if (auto why = refuse_blocks(rows)) return why;
  if (auto why = refuse_batch(args.batch)) return why;
  if (auto why = refuse_long(std::max(tiles_of(rows), tiles_of(args.t)) * of_tile)) return why;
  if (auto why = refuse_rows(args.batch * args.heads * args.s, args.d, 1)) return why;
  return refuse_large(args.q, args.k, args.v, args.y, args.logsumexp, args.dy, args.dq, args.dk, args.dv);
}

KernelRegistration add(DType storage, std::string_view id, void (*run)(const Call&, Device&)) {
  return KernelRegistration(preferred(
      {.id = id,
       .arithmetic = kShaderArithmetic,
       .storage = storage,
       .summary = "64 queries by 64 keys, scores computed again: dq by queries, dk and dv by keys, no atomics",
       .run = run,
       .refuse = &refuse_typed<ops::AttentionBackwardArgs, &refuse>,
       .automatic_above = kProductVolume}));
}

const KernelRegistration registrations[] = {
    add(DType::f32, "attention_backward/vulkan/tiled",
        &run_typed<ops::AttentionBackwardArgs,
                   &run<AttentionBackwardShaders{shaders::attention_backward_rows, shaders::attention_backward_64,
                                                 shaders::attention_backward_128, shaders::attention_backward_256,
                                                 shaders::attention_backward_kv_64, shaders::attention_backward_kv_128,
                                                 shaders::attention_backward_kv_256}>>),
    add(DType::f16, "attention_backward/vulkan/tiled_f16",
        &run_typed<
            ops::AttentionBackwardArgs,
            &run<AttentionBackwardShaders{shaders::attention_backward_rows_f16, shaders::attention_backward_64_f16,
                                          shaders::attention_backward_128_f16, shaders::attention_backward_256_f16,
                                          shaders::attention_backward_kv_64_f16, shaders::attention_backward_kv_128_f16,
                                          shaders::attention_backward_kv_256_f16}>>),
    add(DType::bf16, "attention_backward/vulkan/tiled_bf16",
        &run_typed<ops::AttentionBackwardArgs,
                   &run<AttentionBackwardShaders{
                       shaders::attention_backward_rows_bf16, shaders::attention_backward_64_bf16,
                       shaders::attention_backward_128_bf16, shaders::attention_backward_256_bf16,
                       shaders::attention_backward_kv_64_bf16, shaders::attention_backward_kv_128_bf16,
                       shaders::attention_backward_kv_256_bf16}>>)};

}  // namespace
}  // namespace assay::vulkan::of_attention_backward
