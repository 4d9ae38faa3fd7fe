// Gradients of a linear layer with a low-rank adapter on the CPU.
#include <algorithm>
#include <vector>

#include "kernels/cpu/affine_product.hpp"
#include "kernels/cpu/scratch_device.hpp"
#include "kernels/lora16.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::LoraLinearBackwardArgs;

std::optional<std::string> refusal(const LoraLinearBackwardArgs& args) {
  return openblas_refuses(args.x, args.weight, args.a, args.b, args.t, args.dy, args.dx, args.da, args.db);
}

template <void (*multiply)(const AffineProduct&, Device&)>
void backward(const LoraLinearBackwardArgs& args, Device& device) {
  lora_linear_backward_by<multiply>(args, scratch_of(device));
}

void backward_widened(const LoraLinearBackwardArgs& args, Device& device) {
  lora_linear_backward_in_one_rounding<&multiply_widened>(args, scratch_of(device));
}

const KernelRegistration openblas_kernel{{.id = "lora_linear_backward/cpu/openblas",
                                          .batch_invariant = false,
                                          .summary = kOpenblas,
                                          .run = &run_typed<LoraLinearBackwardArgs, &backward<&multiply_openblas>>,
                                          .refuse = &refuse_typed<LoraLinearBackwardArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.id = "lora_linear_backward/cpu/highway_tiled",
                                       .summary = kHighwayTiled,
                                       .run = &run_typed<LoraLinearBackwardArgs, &backward<&multiply_tiled>>}};
const KernelRegistration dispatch_kernel{{.id = "lora_linear_backward/cpu/dispatch",
                                          .batch_invariant = false,
                                          .summary = kDispatch,
                                          .run = &run_typed<LoraLinearBackwardArgs, &backward<&multiply_dispatch>>,
                                          .priority = 1}};

KernelRegistration widened_kernel(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = widened_arithmetic(storage),
                             .storage = storage,
                             .summary = kWidened,
                             .run = &run_typed<LoraLinearBackwardArgs, &backward_widened>,
                             .priority = 1});
}
const KernelRegistration widened_kernels[] = {
    widened_kernel(DType::f16, "lora_linear_backward/cpu/highway_tiled_f16"),
    widened_kernel(DType::bf16, "lora_linear_backward/cpu/highway_tiled_bf16")};

}  // namespace
}  // namespace assay::cpu
