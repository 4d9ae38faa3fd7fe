// Gradients of a linear layer with a low-rank adapter: launches the variants of lora_linear_backward.comp.
#include "kernels/lora16.hpp"
#include "kernels/vulkan/affine_product.hpp"
#include "shaders/lora_linear_backward_naive16.hpp"
#include "shaders/lora_linear_backward_naive16_bf16.hpp"
#include "shaders/lora_linear_backward_naive16_bf16_da.hpp"
#include "shaders/lora_linear_backward_naive16_bf16_db.hpp"
#include "shaders/lora_linear_backward_naive16_bf16_low.hpp"
#include "shaders/lora_linear_backward_naive16_f16.hpp"
#include "shaders/lora_linear_backward_naive16_f16_da.hpp"
#include "shaders/lora_linear_backward_naive16_f16_db.hpp"
#include "shaders/lora_linear_backward_naive16_f16_low.hpp"
#include "shaders/lora_linear_backward_naive16_tn.hpp"
#include "shaders/lora_linear_backward_tiled64.hpp"
#include "shaders/lora_linear_backward_tiled64_bf16.hpp"
#include "shaders/lora_linear_backward_tiled64_bf16_da.hpp"
#include "shaders/lora_linear_backward_tiled64_bf16_db.hpp"
#include "shaders/lora_linear_backward_tiled64_bf16_low.hpp"
#include "shaders/lora_linear_backward_tiled64_f16.hpp"
#include "shaders/lora_linear_backward_tiled64_f16_da.hpp"
#include "shaders/lora_linear_backward_tiled64_f16_db.hpp"
#include "shaders/lora_linear_backward_tiled64_f16_low.hpp"
#include "shaders/lora_linear_backward_tiled64_tn.hpp"

namespace assay::vulkan::of_lora_linear_backward {
namespace {

using ops::LoraLinearBackwardArgs;

std::optional<std::string> refuse(const LoraLinearBackwardArgs& args) {
  return refuse_large(args.x, args.weight, args.a, args.b, args.t, args.dy, args.dx, args.da, args.db);
}

template <Index tile>
std::optional<std::string> refuse_stored(const LoraLinearBackwardArgs& args) {
  if (auto why = refuse_adapted(args.out, args.r, tile)) return why;
  return refuse(args);
}

template <ProductShaders shaders>
Kernel product(std::string_view id, std::string_view summary) {
  return composed_kernel<LoraLinearBackwardArgs, &lora_linear_backward_by<&multiply<shaders>>, &refuse, shaders.tile>(
      id, summary);
}

template <AdapterShaders shaders>
Kernel stored(std::string_view id, std::string_view summary, DType storage) {
  return composed_kernel<LoraLinearBackwardArgs, &lora_linear_backward_in_one_rounding<&multiply_stored<shaders>>,
                         &refuse_stored<shaders.tile>, shaders.tile>(id, summary, storage);
}

const KernelRegistration naive16{product<ProductShaders{.plain = &shaders::lora_linear_backward_naive16,
                                                        .a_transposed = &shaders::lora_linear_backward_naive16_tn,
                                                        .tile = 16}>("lora_linear_backward/vulkan/naive16", kNaive16)};
const KernelRegistration naive16_f16{
    stored<AdapterShaders{.adapted = &shaders::lora_linear_backward_naive16_f16,
                          .low = &shaders::lora_linear_backward_naive16_f16_low,
                          .da = &shaders::lora_linear_backward_naive16_f16_da,
                          .db = &shaders::lora_linear_backward_naive16_f16_db,
                          .tile = 16}>("lora_linear_backward/vulkan/naive16_f16", kNaive16, DType::f16)};
const KernelRegistration naive16_bf16{
    stored<AdapterShaders{.adapted = &shaders::lora_linear_backward_naive16_bf16,
                          .low = &shaders::lora_linear_backward_naive16_bf16_low,
                          .da = &shaders::lora_linear_backward_naive16_bf16_da,
                          .db = &shaders::lora_linear_backward_naive16_bf16_db,
                          .tile = 16}>("lora_linear_backward/vulkan/naive16_bf16", kNaive16, DType::bf16)};
const KernelRegistration tiled64{
    preferred(product<ProductShaders{.plain = &shaders::lora_linear_backward_tiled64,
                                     .a_transposed = &shaders::lora_linear_backward_tiled64_tn,
                                     .tile = 64}>("lora_linear_backward/vulkan/tiled64", kTiled64))};
const KernelRegistration tiled64_f16{
    preferred(stored<AdapterShaders{.adapted = &shaders::lora_linear_backward_tiled64_f16,
                                    .low = &shaders::lora_linear_backward_tiled64_f16_low,
                                    .da = &shaders::lora_linear_backward_tiled64_f16_da,
                                    .db = &shaders::lora_linear_backward_tiled64_f16_db,
                                    .tile = 64}>("lora_linear_backward/vulkan/tiled64_f16", kTiled64, DType::f16))};
const KernelRegistration tiled64_bf16{
    preferred(stored<AdapterShaders{.adapted = &shaders::lora_linear_backward_tiled64_bf16,
                                    .low = &shaders::lora_linear_backward_tiled64_bf16_low,
                                    .da = &shaders::lora_linear_backward_tiled64_bf16_da,
                                    .db = &shaders::lora_linear_backward_tiled64_bf16_db,
                                    .tile = 64}>("lora_linear_backward/vulkan/tiled64_bf16", kTiled64, DType::bf16))};

}  // namespace
}  // namespace assay::vulkan::of_lora_linear_backward
