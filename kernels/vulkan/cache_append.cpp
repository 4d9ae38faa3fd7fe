// New rows of a cache of keys or values: launches cache_append.comp. Nothing shares memory (the contract's clause).
// Copies bits; f32 storage alone.
#include "kernels/vulkan/heads.hpp"
#include "ops/cache_append.hpp"
#include "shaders/cache_append_heads.hpp"

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
  const View<float> x = f32(args.x), cache = f32(args.cache);
  if (x.size() == 0) return;
  const std::array bindings{bind(target, x), bind(target, args.lengths), bind(target, cache)};
  const AppendPush push{u32(args.batch),
                        u32(args.rows),
                        u32(args.kv_heads),
                        u32(args.d),
                        head_tensor(x, bindings[0]),
                        head_tensor(cache, bindings[2]),
                        bindings[1].first};
  target.dispatch({.name = shaders::cache_append_heads.name,
                   .module = shaders::cache_append_heads.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(x.size(), 64), 1, 1}});
}

std::optional<std::string> refuse(const ops::CacheAppendArgs& args) {
  if (auto why = refuse_long(f32(args.x).size() / (64 * kMaxGroups) + 1)) return why;
  return refuse_large(f32(args.x), f32(args.cache));
}

const KernelRegistration heads_kernel{{.id = "cache_append/vulkan/heads",
                                       .arithmetic = kShaderArithmetic,
                                       .summary = "one element per invocation; f32 storage alone",
                                       .run = &run_typed<ops::CacheAppendArgs, &run>,
                                       .refuse = &refuse_typed<ops::CacheAppendArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_cache_append
