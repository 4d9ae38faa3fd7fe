// Gradients of silu_mul on the CPU, in plain loops.
#include "ops/silu_mul_backward.hpp"

#include <cmath>

#include "runtime/registry.hpp"

namespace assay::cpu::of_silu_mul_backward {
namespace {

using ops::SiluMulBackwardArgs;

/// dgate = dy up s (1 + gate (1 - s)), dup = dy gate s, s = 1 / (1 + exp(-gate))
///   all tensors (rows,n): float32, rows dense; dgate and dup share no memory with the inputs or each other.
void naive(const SiluMulBackwardArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i)
    for (Index j = 0; j < args.n; ++j) {
      const float g = args.gate(i, j), s = 1.0F / (1.0F + std::exp(-g)), dy = args.dy(i, j);
      args.dgate(i, j) = dy * args.up(i, j) * (s * (1.0F + g * (1.0F - s)));
      args.dup(i, j) = dy * (g * s);
    }
}

const KernelRegistration naive_kernel{
    {.id = "silu_mul_backward/cpu/naive", .summary = "two loops", .run = &run_typed<SiluMulBackwardArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_silu_mul_backward
