// Adds the adapter to the weight on the CPU.
#include "kernels/cpu/affine_product.hpp"
#include "kernels/lora.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::LoraMergeArgs;

std::optional<std::string> refusal(const LoraMergeArgs& args) {
  return openblas_refuses(args.weight, args.a, args.b, args.merged);
}

const KernelRegistration openblas_kernel{{.id = "lora_merge/cpu/openblas",
                                          .batch_invariant = false,
                                          .summary = kOpenblas,
                                          .run = &run_typed<LoraMergeArgs, &lora_merge_by<&multiply_openblas>>,
                                          .refuse = &refuse_typed<LoraMergeArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.id = "lora_merge/cpu/highway_tiled",
                                       .summary = kHighwayTiled,
                                       .run = &run_typed<LoraMergeArgs, &lora_merge_by<&multiply_tiled>>}};
const KernelRegistration dispatch_kernel{{.id = "lora_merge/cpu/dispatch",
                                          .batch_invariant = false,
                                          .summary = kDispatch,
                                          .run = &run_typed<LoraMergeArgs, &lora_merge_by<&multiply_dispatch>>,
                                          .priority = 1}};

}  // namespace
}  // namespace assay::cpu
