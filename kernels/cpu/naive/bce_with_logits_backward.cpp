// Gradient of the binary cross-entropy on the CPU, in plain loops.
#include "ops/bce_with_logits_backward.hpp"

#include <cmath>

#include "runtime/registry.hpp"

namespace assay::cpu::of_bce_with_logits_backward {
namespace {

using ops::BceWithLogitsBackwardArgs;

/// dlogits[i,j] = dloss[i] / classes ((1 - t) sigmoid(x) - pos_weight[j] t (1 - sigmoid(x))); logits, targets and
/// dlogits (rows, classes), each of its own leading dimension; dlogits shares no memory with an input. One pass.
void naive(const BceWithLogitsBackwardArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i) {
    const float share = args.dloss(i) / static_cast<float>(args.classes);
    for (Index j = 0; j < args.classes; ++j) {
      const float x = args.logits(i, j), t = args.targets(i, j);
      const float z = std::exp(-std::fabs(x)), near = 1.0F / (1.0F + z), far = z * near;
      const float s = x < 0 ? far : near, rest = x < 0 ? near : far;
      args.dlogits(i, j) = ((1.0F - t) * s - args.pos_weight(j) * t * rest) * share;
    }
  }
}

const KernelRegistration naive_kernel{{.id = "bce_with_logits_backward/cpu/naive",
                                       .summary = "one loop",
                                       .run = &run_typed<BceWithLogitsBackwardArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_bce_with_logits_backward
