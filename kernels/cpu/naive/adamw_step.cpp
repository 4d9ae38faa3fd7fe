// One step of AdamW on the CPU, in plain loops.
#include "ops/adamw_step.hpp"

#include <cmath>

#include "kernels/adamw_constants.hpp"
#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_adamw_step {
namespace {

using ops::AdamwStepArgs;

/// m' = keep1 m + take1 g, v' = keep2 v + take2 g^2, p' = decay p - size m' / (scale sqrt(v') + eps), in place, and
/// rounded = p' in S where there is a copy; no two of the vectors share memory. Error: the contract's bound.
template <class S>
void naive(const AdamwStepArgs& args, Device&) {
  const auto rounded = args.rounded.as<S>();
  const AdamwConstants c = adamw_constants(args);
  for (Index i = 0; i < args.n; ++i) {
    const float g = args.g(i);
    const float m = args.m(i) = c.keep1 * args.m(i) + c.take1 * g;
    const float v = args.v(i) = c.keep2 * args.v(i) + c.take2 * g * g;
    const float p = args.p(i) = c.decay * args.p(i) - c.size * (m / (std::sqrt(v) * c.scale + c.eps));
    if (args.copies > 0) rounded(0, i) = narrow<S>(p);
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "one loop", .run = &run_typed<AdamwStepArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "adamw_step/cpu/naive"),
                                            add<Half>(DType::f16, "adamw_step/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "adamw_step/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_adamw_step
