// The launcher of nf4_dequantize, shared with its mutants.
#pragma once

#include "kernels/vulkan/nf4.hpp"
#include "ops/nf4_dequantize.hpp"

namespace assay::vulkan {

/// Push constants of nf4_dequantize.comp.
struct Nf4DequantizePush {
  std::uint32_t n, k, codes_first, codes_ld, absmax_first, absmax_ld, y_first, y_ld;
  Nf4Codebook codebook;
};

template <const Shader& shader>
void run_nf4_dequantize(const ops::Nf4DequantizeArgs& args, Device& device) {
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
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.k, 128), groups(args.n, 4), 1}});
}

inline std::optional<std::string> refuse_nf4_dequantize(const ops::Nf4DequantizeArgs& args) {
  if (auto why = refuse_long((args.n + 4 * kMaxGroups - 1) / (4 * kMaxGroups) * (args.k / (128 * kMaxGroups) + 10))) return why;
  return refuse_large(args.codes, args.absmax, args.y);
}

template <const Shader& shader>
Kernel nf4_dequantize_row(std::string_view id, std::string_view source, std::string_view summary) {
  return {.op = "nf4_dequantize",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = source,
          .summary = summary,
          .run = &run_typed<ops::Nf4DequantizeArgs, &run_nf4_dequantize<shader>>,
          .refuse = &refuse_typed<ops::Nf4DequantizeArgs, &refuse_nf4_dequantize>};
}

}  // namespace assay::vulkan
