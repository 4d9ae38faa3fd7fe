// dx = dy times the derivative of x sigmoid(x) on the CPU, in plain loops.
#include "ops/silu_backward.hpp"

#include <cmath>

#include "runtime/registry.hpp"

namespace assay::cpu::of_silu_backward {
namespace {

using ops::SiluBackwardArgs;

/// dx[i,j] = dy[i,j] s (1 + x[i,j] (1 - s)), s = 1 / (1 + exp(-x[i,j]))
///   x, dy, dx (m,n): row-major float32, any leading dimension; dx shares no memory with x or dy.
/// Cost 12 m n bytes and an exp an element.
void naive(const SiluBackwardArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      const float x = args.x(i, j), s = 1.0F / (1.0F + std::exp(-x));
      args.dx(i, j) = args.dy(i, j) * (s * (1.0F + x * (1.0F - s)));
    }
}

const KernelRegistration naive_kernel{
    {.id = "silu_backward/cpu/naive", .summary = "two loops", .run = &run_typed<SiluBackwardArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_silu_backward
