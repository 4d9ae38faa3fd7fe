// y = code[q] absmax: launches nf4_dequantize.comp. y shares no memory with codes or absmax, and rows of codes begin at
// multiples of 4 bytes (the contract's clauses). Products are 0 or normal: the contract fixes the bits.
#include "kernels/vulkan/nf4.hpp"
#include "ops/nf4_dequantize.hpp"
#include "shaders/nf4_dequantize_words.hpp"

namespace assay::vulkan::of_nf4_dequantize {
namespace {

/// Push constants of nf4_dequantize.comp.
struct Nf4DequantizePush {
  std::uint32_t n, k, codes_first, codes_ld, absmax_first, absmax_ld, y_first, y_ld;
  Nf4Codebook codebook;
};

void run(const ops::Nf4DequantizeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.codes), bind(target, args.absmax), bind(target, args.y)};
  const Nf4DequantizePush push{static_cast<std::uint32_t>(args.n),
                               static_cast<std::uint32_t>(args.k),
                               bindings[0].first,
                               word_step(args.codes),
                               bindings[1].first,
                               step(args.absmax, 0),
                               bindings[2].first,
                               step(args.y, 0),
                               nf4_codebook()};
  const std::array constants{vectors(args.y, bindings[2])};
  target.dispatch({.name = shaders::nf4_dequantize_words.name,
                   .module = shaders::nf4_dequantize_words.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.k, 128), groups(args.n, 4), 1}});
}

std::optional<std::string> refuse(const ops::Nf4DequantizeArgs& args) {
  if (auto why = refuse_long((args.n + 4 * kMaxGroups - 1) / (4 * kMaxGroups) * (args.k / (128 * kMaxGroups) + 10)))
    return why;
  return refuse_large(args.codes, args.absmax, args.y);
}

const KernelRegistration words{{.id = "nf4_dequantize/vulkan/words",
                                .arithmetic = kShaderArithmetic,
                                .summary = "a word of codes, eight columns, per invocation",
                                .run = &run_typed<ops::Nf4DequantizeArgs, &run>,
                                .refuse = &refuse_typed<ops::Nf4DequantizeArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_nf4_dequantize
