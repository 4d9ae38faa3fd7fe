// y = x sigmoid(x) on the CPU, in plain loops.
#include "ops/silu.hpp"

#include <cmath>

#include "runtime/registry.hpp"

namespace assay::cpu::of_silu {
namespace {

using ops::SiluArgs;

/// y[i,j] = x[i,j] / (1 + exp(-x[i,j]))
///   x, y (m,n): row-major float32, any leading dimension; they share no memory.
/// An exp and three roundings an element; 0 below -88.7, where exp overflows. Cost 8 m n bytes.
void naive(const SiluArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.y(i, j) = args.x(i, j) / (1.0F + std::exp(-args.x(i, j)));
}

const KernelRegistration naive_kernel{
    {.id = "silu/cpu/naive", .summary = "two loops", .run = &run_typed<SiluArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_silu
