// Adds the adapter to the weight on the CPU, in plain loops.
#include "ops/lora_merge.hpp"

#include "kernels/lora.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_lora_merge {
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

const KernelRegistration naive_kernel{
    {.id = "lora_merge/cpu/naive", .summary = "three loops", .run = &run_typed<LoraMergeArgs, &naive>, .priority = -1}};

}  // namespace
}  // namespace assay::cpu::of_lora_merge
