// One step of AdamW on the CPU, in plain loops.
#include "ops/adamw_step.hpp"

#include <cmath>

#include "kernels/adamw_constants.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_adamw_step {
namespace {

using ops::AdamwStepArgs;

/// m' = keep1 m + take1 g, v' = keep2 v + take2 g^2, p' = decay p - size m' / (scale sqrt(v') + eps), in place; no two
/// of the vectors share memory. Error: the contract's bound.
void naive(const AdamwStepArgs& args, Device&) {
  const AdamwConstants c = adamw_constants(args);
  for (Index i = 0; i < args.n; ++i) {
    const float g = args.g(i);
    const float m = args.m(i) = c.keep1 * args.m(i) + c.take1 * g;
    const float v = args.v(i) = c.keep2 * args.v(i) + c.take2 * g * g;
    args.p(i) = c.decay * args.p(i) - c.size * (m / (std::sqrt(v) * c.scale + c.eps));
  }
}

const KernelRegistration naive_kernel{
    {.id = "adamw_step/cpu/naive", .summary = "one loop", .run = &run_typed<AdamwStepArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_adamw_step
