// The adapter added to the weight, on the CPU.
#include "kernels/cpu/affine_product.hpp"
#include "kernels/lora.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::LoraMergeArgs;

/// merged[o,p] = weight[o,p] + alpha / r sum_q b[o,q] a[q,p], the sum in ascending order, scaled last.
void naive(const LoraMergeArgs& args, Device&) {
  const float scale = lora_scale(args.alpha, args.r);
  for (Index o = 0; o < args.out; ++o)
    for (Index p = 0; p < args.in; ++p) {
      float sum = 0.0F;
      for (Index q = 0; q < args.r; ++q) sum += args.b(o, q) * args.a(q, p);
      args.merged(o, p) = args.weight(o, p) + scale * sum;
    }
}

std::optional<std::string> refusal(const LoraMergeArgs& args) {
  return openblas_refuses(args.weight, args.a, args.b, args.merged);
}

const KernelRegistration naive_kernel{{.op = "lora_merge",
                                       .id = "lora_merge/cpu/naive",
                                       .source = "kernels/cpu/lora_merge.cpp",
                                       .summary = "three loops",
                                       .run = &run_typed<LoraMergeArgs, &naive>,
                                       .priority = -1}};
const KernelRegistration openblas_kernel{{.op = "lora_merge",
                                          .id = "lora_merge/cpu/openblas",
                                          .batch_invariant = false,
                                          .source = "kernels/lora.hpp",
                                          .summary = kOpenblas,
                                          .run = &run_typed<LoraMergeArgs, &lora_merge_by<&multiply_openblas>>,
                                          .refuse = &refuse_typed<LoraMergeArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.op = "lora_merge",
                                       .id = "lora_merge/cpu/highway_tiled",
                                       .source = "kernels/lora.hpp",
                                       .summary = kHighwayTiled,
                                       .run = &run_typed<LoraMergeArgs, &lora_merge_by<&multiply_tiled>>}};
const KernelRegistration dispatch_kernel{{.op = "lora_merge",
                                          .id = "lora_merge/cpu/dispatch",
                                          .batch_invariant = false,
                                          .source = "kernels/lora.hpp",
                                          .summary = kDispatch,
                                          .run = &run_typed<LoraMergeArgs, &lora_merge_by<&multiply_dispatch>>,
                                          .priority = 1}};

}  // namespace
}  // namespace assay::cpu
