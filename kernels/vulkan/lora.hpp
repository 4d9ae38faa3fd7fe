// The registry's rows of lora_linear, its backward pass, lora_merge and lora_unmerge, shared with their mutants.
#pragma once

#include "kernels/lora.hpp"
#include "kernels/vulkan/affine_product.hpp"

namespace assay::vulkan {

inline std::optional<std::string> refuse_lora_linear(const ops::LoraLinearArgs& args) {
  return refuse_large(args.x, args.weight, args.a, args.b, args.y, args.t);
}
template <void (*multiply)(const AffineProduct&, Device&), LoraFault fault = LoraFault::none, Index tile = 16>
Kernel lora_linear_kernel(std::string_view id, std::string_view summary) {
  return composed_kernel<ops::LoraLinearArgs, &lora_linear_by<multiply, fault>, &refuse_lora_linear, tile>(
      "lora_linear", id, "kernels/vulkan/lora_linear.comp", summary);
}

inline std::optional<std::string> refuse_lora_linear_backward(const ops::LoraLinearBackwardArgs& args) {
  return refuse_large(args.x, args.weight, args.a, args.b, args.t, args.dy, args.dx, args.da, args.db);
}
template <void (*multiply)(const AffineProduct&, Device&), LoraFault fault = LoraFault::none, Index tile = 16>
Kernel lora_linear_backward_kernel(std::string_view id, std::string_view summary) {
  return composed_kernel<ops::LoraLinearBackwardArgs, &lora_linear_backward_by<multiply, fault>,
                         &refuse_lora_linear_backward, tile>("lora_linear_backward", id,
                                                       "kernels/vulkan/lora_linear_backward.comp", summary);
}

inline std::optional<std::string> refuse_lora_merge(const ops::LoraMergeArgs& args) {
  return refuse_large(args.weight, args.a, args.b, args.merged);
}
template <void (*multiply)(const AffineProduct&, Device&), LoraFault fault = LoraFault::none, Index tile = 16>
Kernel lora_merge_kernel(std::string_view id, std::string_view summary) {
  return composed_kernel<ops::LoraMergeArgs, &lora_merge_by<multiply, fault>, &refuse_lora_merge, tile>(
      "lora_merge", id, "kernels/vulkan/lora_merge.comp", summary);
}

inline std::optional<std::string> refuse_lora_unmerge(const ops::LoraUnmergeArgs& args) {
  return refuse_large(args.merged, args.a, args.b, args.weight);
}
template <void (*multiply)(const AffineProduct&, Device&), LoraFault fault = LoraFault::none, Index tile = 16>
Kernel lora_unmerge_kernel(std::string_view id, std::string_view summary) {
  return composed_kernel<ops::LoraUnmergeArgs, &lora_unmerge_by<multiply, fault>, &refuse_lora_unmerge, tile>(
      "lora_unmerge", id, "kernels/vulkan/lora_unmerge.comp", summary);
}

}  // namespace assay::vulkan
