// New rows of a cache of keys or values: launches cache_append.comp. Nothing shares memory (the contract's clause).
// Copies bits.
#include "kernels/vulkan/heads.hpp"
#include "ops/cache_append.hpp"
#include "shaders/cache_append_heads.hpp"
#include "shaders/cache_append_heads_16.hpp"

namespace assay::vulkan::of_cache_append {
namespace {

/// Push constants of cache_append.comp.
struct AppendPush {
  std::uint32_t batch, rows, heads, d;
  HeadTensor x, cache;
  std::uint32_t lengths_first;
};

void run(const ops::CacheAppendArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const StorageView& x = args.x;
  const StorageView& cache = args.cache;
  if (x.size() == 0) return;
  const std::array bindings{bind(target, x), bind(target, args.lengths), bind(target, cache)};
  const AppendPush push{u32(args.batch),
                        u32(args.rows),
                        u32(args.kv_heads),
                        u32(args.d),
                        head_tensor(x, bindings[0]),
                        head_tensor(cache, bindings[2]),
                        bindings[1].first};
  const Shader& shader = x.dtype() == DType::f32 ? shaders::cache_append_heads : shaders::cache_append_heads_16;
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(x.size(), 64), 1, 1}});
}

std::optional<std::string> refuse(const ops::CacheAppendArgs& args) {
  if (auto why = refuse_long(args.x.size() / (64 * kMaxGroups) + 1)) return why;
  return refuse_large(args.x, args.cache);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "one element per invocation",
                             .run = &run_typed<ops::CacheAppendArgs, &run>,
                             .refuse = &refuse_typed<ops::CacheAppendArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "cache_append/vulkan/heads"),
                                            add(DType::f16, "cache_append/vulkan/heads_f16"),
                                            add(DType::bf16, "cache_append/vulkan/heads_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_cache_append
