// Gradient of the weighted cross-entropy on the CPU, in plain loops.
#include "ops/cross_entropy_backward.hpp"

#include <cmath>

#include "runtime/registry.hpp"

namespace assay::cpu::of_cross_entropy_backward {
namespace {

using ops::CrossEntropyBackwardArgs;

/// dlogits[i,j] = weights[y] (exp(logits[i,j] - logsumexp[i]) - [j = y]) (dloss[i] + dtotal / normalizer), y =
/// targets[i]; dlogits shares no memory with an input and may have another leading dimension than logits. One pass.
void naive(const CrossEntropyBackwardArgs& args, Device&) {
  const float share = args.dtotal(0) / args.normalizer(0);
  for (Index i = 0; i < args.rows; ++i) {
    const Index y = args.targets(i);
    const float scale = args.weights(y) * (args.dloss(i) + share);
    for (Index j = 0; j < args.classes; ++j) {
      const float p = std::exp(args.logits(i, j) - args.logsumexp(i));
      args.dlogits(i, j) = (j == y ? p - 1.0F : p) * scale;
    }
  }
}

const KernelRegistration naive_kernel{{.id = "cross_entropy_backward/cpu/naive",
                                       .summary = "one loop",
                                       .run = &run_typed<CrossEntropyBackwardArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_cross_entropy_backward
