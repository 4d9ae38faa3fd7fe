// y = x · Wᵀ + bias on the CPU, in plain loops.
#include "ops/linear.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_linear {
namespace {

using ops::LinearArgs;

/// Sums over in ascending order and adds the bias last.
void naive(const LinearArgs& args, Device&) {
  for (Index i = 0; i < args.s; ++i)
    for (Index o = 0; o < args.out; ++o) {
      float sum = 0.0F;
      for (Index p = 0; p < args.in; ++p) sum += args.x(i, p) * args.weight(o, p);
      args.y(i, o) = args.biases == 0 ? sum : sum + args.bias(0, o);
    }
}

const KernelRegistration naive_kernel{
    {.id = "linear/cpu/naive", .summary = "three loops", .run = &run_typed<LinearArgs, &naive>, .priority = -1}};

}  // namespace
}  // namespace assay::cpu::of_linear
