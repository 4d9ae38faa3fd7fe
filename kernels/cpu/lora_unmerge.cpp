// The adapter taken out of the weight, on the CPU.
#include "kernels/cpu/affine_product.hpp"
#include "kernels/lora.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::LoraUnmergeArgs;

/// weight[o,p] = merged[o,p] - alpha / r sum_q b[o,q] a[q,p], the sum in ascending order, scaled last.
void naive(const LoraUnmergeArgs& args, Device&) {
  const float scale = lora_scale(args.alpha, args.r);
  for (Index o = 0; o < args.out; ++o)
    for (Index p = 0; p < args.in; ++p) {
      float sum = 0.0F;
      for (Index q = 0; q < args.r; ++q) sum += args.b(o, q) * args.a(q, p);
      args.weight(o, p) = args.merged(o, p) - scale * sum;
    }
}

std::optional<std::string> refusal(const LoraUnmergeArgs& args) {
  return openblas_refuses(args.merged, args.a, args.b, args.weight);
}

const KernelRegistration naive_kernel{{.op = "lora_unmerge",
                                       .id = "lora_unmerge/cpu/naive",
                                       .source = "kernels/cpu/lora_unmerge.cpp",
                                       .summary = "three loops",
                                       .run = &run_typed<LoraUnmergeArgs, &naive>,
                                       .priority = -1}};
const KernelRegistration openblas_kernel{{.op = "lora_unmerge",
                                          .id = "lora_unmerge/cpu/openblas",
                                          .batch_invariant = false,
                                          .source = "kernels/lora.hpp",
                                          .summary = kOpenblas,
                                          .run = &run_typed<LoraUnmergeArgs, &lora_unmerge_by<&multiply_openblas>>,
                                          .refuse = &refuse_typed<LoraUnmergeArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.op = "lora_unmerge",
                                       .id = "lora_unmerge/cpu/highway_tiled",
                                       .source = "kernels/lora.hpp",
                                       .summary = kHighwayTiled,
                                       .run = &run_typed<LoraUnmergeArgs, &lora_unmerge_by<&multiply_tiled>>}};
const KernelRegistration dispatch_kernel{{.op = "lora_unmerge",
                                          .id = "lora_unmerge/cpu/dispatch",
                                          .batch_invariant = false,
                                          .source = "kernels/lora.hpp",
                                          .summary = kDispatch,
                                          .run = &run_typed<LoraUnmergeArgs, &lora_unmerge_by<&multiply_dispatch>>,
                                          .priority = 1}};

}  // namespace
}  // namespace assay::cpu
