// A linear layer with a low-rank adapter: launches the variants of lora_linear.comp.
#include "kernels/lora16.hpp"
#include "kernels/vulkan/affine_product.hpp"
#include "shaders/lora_linear_naive16.hpp"
#include "shaders/lora_linear_naive16_bf16.hpp"
#include "shaders/lora_linear_naive16_bf16_low.hpp"
#include "shaders/lora_linear_naive16_f16.hpp"
#include "shaders/lora_linear_naive16_f16_low.hpp"
#include "shaders/lora_linear_tiled64.hpp"
#include "shaders/lora_linear_tiled64_bf16.hpp"
#include "shaders/lora_linear_tiled64_bf16_low.hpp"
#include "shaders/lora_linear_tiled64_f16.hpp"
#include "shaders/lora_linear_tiled64_f16_low.hpp"

namespace assay::vulkan::of_lora_linear {
namespace {

using ops::LoraLinearArgs;

std::optional<std::string> refuse(const LoraLinearArgs& args) {
  return refuse_large(args.x, args.weight, args.a, args.b, args.y, args.t);
}

template <Index tile>
std::optional<std::string> refuse_stored(const LoraLinearArgs& args) {
  if (auto why = refuse_adapted(args.in, args.r, tile)) return why;
  return refuse(args);
}

template <ProductShaders shaders>
Kernel product(std::string_view id, std::string_view summary) {
  return composed_kernel<LoraLinearArgs, &lora_linear_by<&multiply<shaders>>, &refuse, shaders.tile>(id, summary);
}

template <AdapterShaders shaders>
Kernel stored(std::string_view id, std::string_view summary, DType storage) {
  return composed_kernel<LoraLinearArgs, &lora_linear_in_one_rounding<&multiply_stored<shaders>>,
                         &refuse_stored<shaders.tile>, shaders.tile>(id, summary, storage);
}

const KernelRegistration naive16{product<ProductShaders{.b_transposed = &shaders::lora_linear_naive16, .tile = 16}>(
    "lora_linear/vulkan/naive16", kNaive16)};
const KernelRegistration naive16_f16{stored<AdapterShaders{
    .adapted = &shaders::lora_linear_naive16_f16, .low = &shaders::lora_linear_naive16_f16_low, .tile = 16}>(
    "lora_linear/vulkan/naive16_f16", kNaive16, DType::f16)};
const KernelRegistration naive16_bf16{stored<AdapterShaders{
    .adapted = &shaders::lora_linear_naive16_bf16, .low = &shaders::lora_linear_naive16_bf16_low, .tile = 16}>(
    "lora_linear/vulkan/naive16_bf16", kNaive16, DType::bf16)};
const KernelRegistration tiled64{
    preferred(product<ProductShaders{.b_transposed = &shaders::lora_linear_tiled64, .tile = 64}>(
        "lora_linear/vulkan/tiled64", kTiled64))};
const KernelRegistration tiled64_f16{preferred(
    stored<AdapterShaders{
        .adapted = &shaders::lora_linear_tiled64_f16, .low = &shaders::lora_linear_tiled64_f16_low, .tile = 64}>(
        "lora_linear/vulkan/tiled64_f16", kTiled64, DType::f16))};
const KernelRegistration tiled64_bf16{preferred(
    stored<AdapterShaders{
        .adapted = &shaders::lora_linear_tiled64_bf16, .low = &shaders::lora_linear_tiled64_bf16_low, .tile = 64}>(
        "lora_linear/vulkan/tiled64_bf16", kTiled64, DType::bf16))};

}  // namespace
}  // namespace assay::vulkan::of_lora_linear
