// A linear layer with a low-rank adapter on the CPU.
#include "kernels/cpu/affine_product.hpp"
#include "kernels/lora.hpp"
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

}  // namespace
}  // namespace assay::cpu
