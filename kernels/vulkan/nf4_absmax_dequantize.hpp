// The launcher of nf4_absmax_dequantize, shared with its mutants.
#pragma once

#include "core/nf4_absmax.hpp"
#include "kernels/vulkan/nf4_absmax.hpp"
#include "ops/nf4_absmax_dequantize.hpp"

namespace assay::vulkan {

/// Push constants of nf4_absmax_dequantize.comp and nf4_absmax_dequantize_naive.comp.
struct AbsmaxDequantizePush {
  std::uint32_t count, width, codes_first, absmax2_first, offset_first, absmax_first, ld;
};

/// each: elements that a workgroup takes at a time.
template <const Shader& shader, Index each>
void run_nf4_absmax_dequantize(const ops::Nf4AbsmaxDequantizeArgs& args, Device& device) {
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
std::optional<std::string> refuse_nf4_absmax_dequantize(const ops::Nf4AbsmaxDequantizeArgs& args) {
  if (auto why = refuse_long(args.n * args.b / (each * kMaxGroups) + 1)) return why;
  return refuse_large(args.absmax, args.codes);
}

template <const Shader& shader, Index each>
Kernel nf4_absmax_dequantize_row(std::string_view id, std::string_view source, std::string_view summary) {
  return {.op = "nf4_absmax_dequantize",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = source,
          .summary = summary,
          .run = &run_typed<ops::Nf4AbsmaxDequantizeArgs, &run_nf4_absmax_dequantize<shader, each>>,
          .refuse = &refuse_typed<ops::Nf4AbsmaxDequantizeArgs, &refuse_nf4_absmax_dequantize<each>>};
}

}  // namespace assay::vulkan
