// A linear layer with a low-rank adapter on the CPU.
#include "kernels/cpu/affine_product.hpp"
#include "kernels/lora16.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::LoraLinearArgs;

std::optional<std::string> refusal(const LoraLinearArgs& args) {
  return openblas_refuses(args.x, args.weight, args.a, args.b, args.y, args.t);
}

const KernelRegistration openblas_kernel{{.id = "lora_linear/cpu/openblas",
                                          .batch_invariant = false,
                                          .summary = kOpenblas,
                                          .run = &run_typed<LoraLinearArgs, &lora_linear_by<&multiply_openblas>>,
                                          .refuse = &refuse_typed<LoraLinearArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.id = "lora_linear/cpu/highway_tiled",
                                       .summary = kHighwayTiled,
                                       .run = &run_typed<LoraLinearArgs, &lora_linear_by<&multiply_tiled>>}};
const KernelRegistration dispatch_kernel{{.id = "lora_linear/cpu/dispatch",
                                          .batch_invariant = false,
                                          .summary = kDispatch,
                                          .run = &run_typed<LoraLinearArgs, &lora_linear_by<&multiply_dispatch>>,
                                          .priority = 1}};

KernelRegistration widened_kernel(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = widened_arithmetic(storage),
                             .storage = storage,
                             .summary = kWidened,
                             .run = &run_typed<LoraLinearArgs, &lora_linear_in_one_rounding<&multiply_widened>>,
                             .priority = 1});
}
const KernelRegistration widened_kernels[] = {widened_kernel(DType::f16, "lora_linear/cpu/highway_tiled_f16"),
                                              widened_kernel(DType::bf16, "lora_linear/cpu/highway_tiled_bf16")};

}  // namespace
}  // namespace assay::cpu
