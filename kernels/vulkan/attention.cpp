// The launchers of attention.
#include "kernels/vulkan/heads.hpp"
#include "ops/attention.hpp"
#include "shaders/attention_naive.hpp"
#include "shaders/attention_naive_bf16.hpp"
#include "shaders/attention_naive_f16.hpp"
#include "shaders/attention_tiled_128.hpp"
#include "shaders/attention_tiled_128_bf16.hpp"
#include "shaders/attention_tiled_128_f16.hpp"
#include "shaders/attention_tiled_256.hpp"
#include "shaders/attention_tiled_256_bf16.hpp"
#include "shaders/attention_tiled_256_f16.hpp"
#include "shaders/attention_tiled_64.hpp"
#include "shaders/attention_tiled_64_bf16.hpp"
#include "shaders/attention_tiled_64_f16.hpp"

namespace assay::vulkan::of_attention {
namespace {

using ops::AttentionArgs;

/// Push constants of attention.glsl.
struct AttentionPush {
  HeadTensor q, k, v, y;
  std::uint32_t logsumexp_first, logsumexp_batch, logsumexp_head, lengths_first, starts_first, s, t, group, d, causal;
  float scale;
};

void launch(const Shader& shader, std::array<std::uint32_t, 3> grid, const AttentionArgs& args, VulkanDevice& target) {
  const StorageView &q = args.q, &k = args.k, &v = args.v, &y = args.y;
  const std::array bindings{bind(target, q),
                            bind(target, k),
                            bind(target, v),
                            bind(target, args.lengths),
                            bind(target, args.starts),
                            bind(target, y),
                            bind(target, args.logsumexp)};
  const AttentionPush push{head_tensor(q, bindings[0]),
                           head_tensor(k, bindings[1]),
                           head_tensor(v, bindings[2]),
                           head_tensor(y, bindings[5]),
                           bindings[6].first,
                           step(args.logsumexp, 0),
                           step(args.logsumexp, 1),
                           bindings[3].first,
                           bindings[4].first,
                           u32(args.s),
                           u32(args.t),
                           u32(args.heads / args.kv_heads),
                           u32(args.d),
                           args.causal != 0,
                           static_cast<float>(args.scale)};
  const bool aligned = aligned_heads(push.q) && aligned_heads(push.k) && aligned_heads(push.v) && aligned_heads(push.y);
  const std::array<std::uint32_t, 1> constants{aligned};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = grid});
}

/// Chooses among the shaders for heads of up to 64, 128 and 256 elements.
template <const Shader& up_to_64, const Shader& up_to_128, const Shader& up_to_256>
void run_tiled(const AttentionArgs& args, Device& device) {
  const auto blocks = u32(tiles_of(args.s * (args.heads / args.kv_heads)));
  launch(args.d <= 64    ? up_to_64
         : args.d <= 128 ? up_to_128
                         : up_to_256,
         {blocks, u32(args.batch), u32(args.kv_heads)}, args, vulkan_device(device));
}

template <const Shader& shader>
void run_naive(const AttentionArgs& args, Device& device) {
  launch(shader, {groups(args.s, 1), u32(args.heads), u32(args.batch)}, args, vulkan_device(device));
}

std::optional<std::string> refuse_large_tensors(const AttentionArgs& args) {
  if (auto why = refuse_batch(args.batch)) return why;
  return refuse_large(args.q, args.k, args.v, args.y, args.logsumexp);
}

std::optional<std::string> refuse_tiled(const AttentionArgs& args) {
  if (auto why = refuse_blocks(args.s * (args.heads / args.kv_heads))) return why;
  if (auto why = refuse_long(tiles_of(args.t) * (1 + product_iterations(args.d) + sum_iterations(args.d)))) return why;
  return refuse_large_tensors(args);
}

/// Each tile of keys takes an iteration per element of a score, and two per key.
std::optional<std::string> refuse_naive(const AttentionArgs& args) {
  const Index turns = tiles_of(args.t) * (args.d + 1) + 6 * args.t;
  if (auto why = refuse_long((args.s + kMaxGroups - 1) / kMaxGroups * (turns + 5))) return why;
  return refuse_large_tensors(args);
}

/// Both shaders rescale their sums after every 64 keys.
constexpr Arithmetic kOnlineShader = [] {
  Arithmetic arithmetic = kShaderArithmetic;
  arithmetic.online_tile = static_cast<int>(kTileRows);
  return arithmetic;
}();

template <const Shader& shader>
KernelRegistration add_naive(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kOnlineShader,
                             .storage = storage,
                             .summary = "a workgroup per query, 64 keys at a time",
                             .run = &run_typed<AttentionArgs, &run_naive<shader>>,
                             .refuse = &refuse_typed<AttentionArgs, &refuse_naive>,
                             .automatic_above = kProductVolume});
}

KernelRegistration add_tiled(DType storage, std::string_view id, void (*run)(const Call&, Device&)) {
  return KernelRegistration(preferred(
      {.id = id,
       .arithmetic = kOnlineShader,
       .storage = storage,
       .summary = "online softmax, 64 queries by 64 keys, 4x4 scores in registers, vector loads where aligned",
       .run = run,
       .refuse = &refuse_typed<AttentionArgs, &refuse_tiled>,
       .automatic_above = kProductVolume}));
}

const KernelRegistration registrations[] = {
    add_naive<shaders::attention_naive>(DType::f32, "attention/vulkan/naive"),
    add_naive<shaders::attention_naive_f16>(DType::f16, "attention/vulkan/naive_f16"),
    add_naive<shaders::attention_naive_bf16>(DType::bf16, "attention/vulkan/naive_bf16"),
    add_tiled(DType::f32, "attention/vulkan/tiled",
              &run_typed<AttentionArgs, &run_tiled<shaders::attention_tiled_64, shaders::attention_tiled_128,
                                                   shaders::attention_tiled_256>>),
    add_tiled(DType::f16, "attention/vulkan/tiled_f16",
              &run_typed<AttentionArgs, &run_tiled<shaders::attention_tiled_64_f16, shaders::attention_tiled_128_f16,
                                                   shaders::attention_tiled_256_f16>>),
    add_tiled(DType::bf16, "attention/vulkan/tiled_bf16",
              &run_typed<AttentionArgs, &run_tiled<shaders::attention_tiled_64_bf16, shaders::attention_tiled_128_bf16,
                                                   shaders::attention_tiled_256_bf16>>)};

}  // namespace
}  // namespace assay::vulkan::of_attention
