// Euclidean norm of a gradient on the CPU, in plain loops.
#include "ops/global_grad_norm.hpp"

#include <cmath>

#include "runtime/registry.hpp"

namespace assay::cpu::of_global_grad_norm {
namespace {

using ops::GlobalGradNormArgs;

/// norm = sqrt(sum_i g[i]^2). Error: the contract's bound.
void naive(const GlobalGradNormArgs& args, Device&) {
  float sum = 0;
  for (Index i = 0; i < args.n; ++i) sum += args.g(i) * args.g(i);
  args.norm(0) = std::sqrt(sum);
}

const KernelRegistration naive_kernel{{.id = "global_grad_norm/cpu/naive",
                                       .summary = "one sum, terms in order",
                                       .run = &run_typed<GlobalGradNormArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_global_grad_norm
