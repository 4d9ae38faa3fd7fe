// y = x · Wᵀ + bias: launches the variants of linear.comp.
#include "kernels/linear.hpp"

#include "kernels/vulkan/affine_product.hpp"
#include "shaders/linear_naive16.hpp"
#include "shaders/linear_tiled64.hpp"

namespace assay::vulkan::of_linear {
namespace {

using ops::LinearArgs;

std::optional<std::string> refuse(const LinearArgs& args) { return refuse_large(args.x, args.weight, args.y); }

template <ProductShaders shaders>
Kernel product(std::string_view id, std::string_view summary) {
  return composed_kernel<LinearArgs, &linear_by<&multiply<shaders>>, &refuse, shaders.tile>(id, summary);
}

const KernelRegistration naive16{
    product<ProductShaders{.b_transposed = &shaders::linear_naive16, .tile = 16}>("linear/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{preferred(
    product<ProductShaders{.b_transposed = &shaders::linear_tiled64, .tile = 64}>("linear/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_linear
