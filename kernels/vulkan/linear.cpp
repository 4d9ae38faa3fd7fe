// y = x · Wᵀ + bias: launches the variants of linear.comp.
#include "kernels/vulkan/linear.hpp"

#include "shaders/linear_naive16.hpp"
#include "shaders/linear_tiled64.hpp"

namespace assay::vulkan::of_linear {
namespace {

constexpr ProductShaders kNaive{.b_transposed = &shaders::linear_naive16, .tile = 16};
constexpr ProductShaders kTiled{.b_transposed = &shaders::linear_tiled64, .tile = 64};

const KernelRegistration naive16{linear_kernel<&multiply<kNaive>>("linear/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{preferred(linear_kernel<&multiply<kTiled>, LinearFault::none, kTiled.tile>("linear/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_linear
