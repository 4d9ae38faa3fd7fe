// q = the NF4 code of x / absmax: launches nf4_quantize.comp. Tensors share no memory, and rows of codes begin at
// multiples of 4 bytes (the contract's clauses). Scales are 0, NaN or large enough that no limit is subnormal: the
// contract fixes the bits.
#include "kernels/vulkan/nf4.hpp"
#include "ops/nf4_quantize.hpp"
#include "shaders/nf4_quantize_words.hpp"

namespace assay::vulkan::of_nf4_quantize {
namespace {

/// Push constants of nf4_quantize.comp.
struct Nf4QuantizePush {
  std::uint32_t n, k, x_first, x_ld, codes_first, codes_ld, absmax_first, absmax_ld;
  float midpoints[15];
};

void run(const ops::Nf4QuantizeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.x), bind(target, args.codes), bind(target, args.absmax)};
  Nf4QuantizePush push{static_cast<std::uint32_t>(args.n),
                       static_cast<std::uint32_t>(args.k),
                       bindings[0].first,
                       step(args.x, 0),
                       bindings[1].first,
                       word_step(args.codes),
                       bindings[2].first,
                       step(args.absmax, 0),
                       {}};
  std::ranges::copy(kNf4Midpoints, push.midpoints);
  target.dispatch({.name = shaders::nf4_quantize_words.name,
                   .module = shaders::nf4_quantize_words.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n * nf4_blocks(args.k), 8), 1, 1}});
}

std::optional<std::string> refuse(const ops::Nf4QuantizeArgs& args) {
  if (auto why = refuse_long(args.n * nf4_blocks(args.k) / (8 * kMaxGroups) + 1)) return why;
  return refuse_large(args.x, args.codes, args.absmax);
}

const KernelRegistration words{
    {.id = "nf4_quantize/vulkan/words",
     .arithmetic = kShaderArithmetic,
     .summary = "eight invocations a block, a word of codes each, the maximum in shared memory",
     .run = &run_typed<ops::Nf4QuantizeArgs, &run>,
     .refuse = &refuse_typed<ops::Nf4QuantizeArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_nf4_quantize
