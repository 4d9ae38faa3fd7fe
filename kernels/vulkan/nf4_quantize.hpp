// The launcher of nf4_quantize, shared with its mutants.
#pragma once

#include "kernels/vulkan/nf4.hpp"
#include "ops/nf4_quantize.hpp"

namespace assay::vulkan {

/// Push constants of nf4_quantize.comp.
struct Nf4QuantizePush {
  std::uint32_t n, k, x_first, x_ld, codes_first, codes_ld, absmax_first, absmax_ld;
  float midpoints[15];
};

template <const Shader& shader>
void run_nf4_quantize(const ops::Nf4QuantizeArgs& args, Device& device) {
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
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n * nf4_blocks(args.k), 8), 1, 1}});
}

inline std::optional<std::string> refuse_nf4_quantize(const ops::Nf4QuantizeArgs& args) {
  if (auto why = refuse_long(args.n * nf4_blocks(args.k) / (8 * kMaxGroups) + 1)) return why;
  return refuse_large(args.x, args.codes, args.absmax);
}

template <const Shader& shader>
Kernel nf4_quantize_row(std::string_view id, std::string_view source, std::string_view summary) {
  return {.op = "nf4_quantize",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = source,
          .summary = summary,
          .run = &run_typed<ops::Nf4QuantizeArgs, &run_nf4_quantize<shader>>,
          .refuse = &refuse_typed<ops::Nf4QuantizeArgs, &refuse_nf4_quantize>};
}

}  // namespace assay::vulkan
