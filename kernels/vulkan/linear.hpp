// The registry's row of linear, shared with its mutants.
#pragma once

#include "kernels/linear.hpp"
#include "kernels/vulkan/affine_product.hpp"

namespace assay::vulkan {

inline std::optional<std::string> refuse_linear(const ops::LinearArgs& args) {
  return refuse_large(args.x, args.weight, args.y);
}

template <void (*multiply)(const AffineProduct&, Device&), LinearFault fault = LinearFault::none, Index tile = 16>
Kernel linear_kernel(std::string_view id, std::string_view summary) {
  return composed_kernel<ops::LinearArgs, &linear_by<multiply, fault>, &refuse_linear, tile>(
      "linear", id, "kernels/vulkan/linear.comp", summary);
}

}  // namespace assay::vulkan
