// absmax = code[q] absmax2 + offset: launches nf4_absmax_dequantize.comp or nf4_absmax_dequantize_naive.comp. absmax
// shares no memory with the inputs, and the inputs are dense (the contract's clauses).
#include "core/nf4_absmax.hpp"
#include "kernels/vulkan/nf4_absmax.hpp"
#include "ops/nf4_absmax_dequantize.hpp"
#include "shaders/nf4_absmax_dequantize_naive.hpp"
#include "shaders/nf4_absmax_dequantize_words.hpp"

namespace assay::vulkan::of_nf4_absmax_dequantize {
namespace {

/// Push constants of nf4_absmax_dequantize.comp and nf4_absmax_dequantize_naive.comp.
struct AbsmaxDequantizePush {
  std::uint32_t count, width, codes_first, absmax2_first, offset_first, absmax_first, ld;
};

/// each: elements that a workgroup takes at a time.
template <const Shader& shader, Index each>
void run(const ops::Nf4AbsmaxDequantizeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.codes), bind(target, args.absmax2), bind(target, args.offset),
                            bind(target, args.absmax)};
  const AbsmaxDequantizePush push{static_cast<std::uint32_t>(args.absmax.size()),
                                  static_cast<std::uint32_t>(args.b),
                                  bindings[0].first,
                                  bindings[1].first,
                                  bindings[2].first,
                                  bindings[3].first,
                                  leading(args.absmax)};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.absmax.size(), each), 1, 1}});
}

template <Index each>
std::optional<std::string> refuse(const ops::Nf4AbsmaxDequantizeArgs& args) {
  if (auto why = refuse_long(args.n * args.b / (each * kMaxGroups) + 1)) return why;
  return refuse_large(args.absmax, args.codes);
}

template <const Shader& shader, Index each>
Kernel decoder(std::string_view id, std::string_view summary) {
  return {.id = id,
          .arithmetic = kShaderArithmetic,
          .summary = summary,
          .run = &run_typed<ops::Nf4AbsmaxDequantizeArgs, &run<shader, each>>,
          .refuse = &refuse_typed<ops::Nf4AbsmaxDequantizeArgs, &refuse<each>>};
}

const KernelRegistration naive{decoder<shaders::nf4_absmax_dequantize_naive, 64>("nf4_absmax_dequantize/vulkan/naive",
                                                                                 "one invocation an element")};
const KernelRegistration words{preferred(decoder<shaders::nf4_absmax_dequantize_words, 1024>(
    "nf4_absmax_dequantize/vulkan/words",
    "a word of codes, four elements, per invocation; the codebook in shared memory"))};

}  // namespace
}  // namespace assay::vulkan::of_nf4_absmax_dequantize
