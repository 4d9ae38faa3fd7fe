// Subtracts the adapter from the weight on the CPU.
#include "kernels/cpu/affine_product.hpp"
#include "kernels/lora.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::LoraUnmergeArgs;

std::optional<std::string> refusal(const LoraUnmergeArgs& args) {
  return openblas_refuses(args.merged, args.a, args.b, args.weight);
}

const KernelRegistration openblas_kernel{{.id = "lora_unmerge/cpu/openblas",
                                          .batch_invariant = false,
                                          .summary = kOpenblas,
                                          .run = &run_typed<LoraUnmergeArgs, &lora_unmerge_by<&multiply_openblas>>,
                                          .refuse = &refuse_typed<LoraUnmergeArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.id = "lora_unmerge/cpu/highway_tiled",
                                       .summary = kHighwayTiled,
                                       .run = &run_typed<LoraUnmergeArgs, &lora_unmerge_by<&multiply_tiled>>}};
const KernelRegistration dispatch_kernel{{.id = "lora_unmerge/cpu/dispatch",
                                          .batch_invariant = false,
                                          .summary = kDispatch,
                                          .run = &run_typed<LoraUnmergeArgs, &lora_unmerge_by<&multiply_dispatch>>,
                                          .priority = 1}};

}  // namespace
}  // namespace assay::cpu
