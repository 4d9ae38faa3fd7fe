// q = the 8-bit code of (absmax - mean) / absmax2: launches nf4_absmax_quantize_sum.comp, then nf4_absmax_quantize.comp
// or nf4_absmax_quantize_naive.comp. Tensors share no memory; codes, absmax2 and offset are dense (the contract's
// clauses). Scales are 0 or large enough that no limit is subnormal: the contract fixes the bits.
#include "core/nf4_absmax.hpp"
#include "kernels/vulkan/nf4_absmax.hpp"
#include "ops/nf4_absmax_quantize.hpp"
#include "shaders/nf4_absmax_quantize_groups.hpp"
#include "shaders/nf4_absmax_quantize_naive.hpp"
#include "shaders/nf4_absmax_quantize_sum.hpp"

namespace assay::vulkan::of_nf4_absmax_quantize {
namespace {

/// Push constants of nf4_absmax_quantize_sum.comp.
struct AbsmaxSumPush {
  std::uint32_t count, width, first, ld, to_first, last;
  float reciprocal;
};
/// Push constants of nf4_absmax_quantize.comp and nf4_absmax_quantize_naive.comp.
struct AbsmaxQuantizePush {
  std::uint32_t count, width, absmax_first, ld, codes_first, absmax2_first, offset_first;
};

/// Computes offset[0] from all values, 256 to 1 a level, in scratch of 4/255 of their bytes, which the device frees
/// after use.
void dispatch_offset(VulkanDevice& target, const ops::Nf4AbsmaxQuantizeArgs& args, const StorageBinding& absmax,
                     const StorageBinding& offset) {
  const Index count = args.absmax.size(), below = absmax_groups(count);
  const Buffer scratch = target.allocate(static_cast<std::size_t>(below + absmax_groups(below) + 1) * sizeof(float));
  const StorageBinding sums = target.bind(scratch.address(), scratch.bytes());
  StorageBinding from = absmax;
  AbsmaxSumPush push{static_cast<std::uint32_t>(count),
                     static_cast<std::uint32_t>(args.b),
                     absmax.first,
                     leading(args.absmax),
                     sums.first,
                     0,
                     count == 0 ? 0.0F : absmax_reciprocal(count)};
  std::uint32_t next = sums.first + static_cast<std::uint32_t>(below);
  for (;;) {
    const auto several = static_cast<std::uint32_t>(std::max<Index>(absmax_groups(push.count), 1));
    push.last = several == 1 ? 1 : 0;
    if (push.last != 0) push.to_first = offset.first;
    const std::array bindings{from, push.last != 0 ? offset : sums};
    target.dispatch({.name = shaders::nf4_absmax_quantize_sum.name,
                     .module = shaders::nf4_absmax_quantize_sum.module,
                     .bindings = bindings,
                     .push = bytes_of(push),
                     .groups = {groups(several, 1), 1, 1}});
    if (push.last != 0) return;
    from = sums;
    push.first = push.to_first;
    push.count = push.width = push.ld = several;
    std::swap(push.to_first, next);
  }
}

/// groups_each: groups of 256 that a workgroup takes at a time.
template <const Shader& shader, Index groups_each>
void run(const ops::Nf4AbsmaxQuantizeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.absmax), bind(target, args.codes), bind(target, args.absmax2),
                            bind(target, args.offset)};
  dispatch_offset(target, args, bindings[0], bindings[3]);
  if (args.absmax.size() == 0) return;
  const AbsmaxQuantizePush push{static_cast<std::uint32_t>(args.absmax.size()),
                                static_cast<std::uint32_t>(args.b),
                                bindings[0].first,
                                leading(args.absmax),
                                bindings[1].first,
                                bindings[2].first,
                                bindings[3].first};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(absmax_groups(args.absmax.size()), groups_each), 1, 1}});
}

/// Counts the iterations for each group of a workgroup: two trees of eight, or two loops and 256 searches of eight.
template <Index groups_each>
std::optional<std::string> refuse(const ops::Nf4AbsmaxQuantizeArgs& args) {
  const Index turns = groups_each == 1 ? 20 : 3000;
  if (auto why = refuse_long(turns * (absmax_groups(args.n * args.b) / (groups_each * kMaxGroups) + 1))) return why;
  return refuse_large(args.absmax, args.codes);
}

template <const Shader& shader, Index groups_each>
Kernel encoder(std::string_view id, std::string_view summary) {
  return {.id = id,
          .arithmetic = kShaderArithmetic,
          .summary = summary,
          .run = &run_typed<ops::Nf4AbsmaxQuantizeArgs, &run<shader, groups_each>>,
          .refuse = &refuse_typed<ops::Nf4AbsmaxQuantizeArgs, &refuse<groups_each>>};
}

const KernelRegistration naive{encoder<shaders::nf4_absmax_quantize_naive, 64>("nf4_absmax_quantize/vulkan/naive",
                                                                               "one invocation a group of 256")};
const KernelRegistration in_groups{preferred(encoder<shaders::nf4_absmax_quantize_groups, 1>(
    "nf4_absmax_quantize/vulkan/groups", "one workgroup a group of 256, limits in shared memory, searched by halves"))};

}  // namespace
}  // namespace assay::vulkan::of_nf4_absmax_quantize
