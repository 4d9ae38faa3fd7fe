// Binary cross-entropy of logits on the CPU, in plain loops.
#include "ops/bce_with_logits.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/registry.hpp"

namespace assay::cpu::of_bce_with_logits {
namespace {

using ops::BceWithLogitsArgs;

/// loss[i] = sum_j (pos_weight[j] t softplus(-x) + (1 - t) softplus(x)) / classes; logits, targets (rows, classes): any
/// leading dimension; loss shares no memory with them. One pass. Error: the contract's bound.
void naive(const BceWithLogitsArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0;
    for (Index j = 0; j < args.classes; ++j) {
      const float x = args.logits(i, j), t = args.targets(i, j), beside = std::log1p(std::exp(-std::fabs(x)));
      sum += args.pos_weight(j) * t * (std::max(-x, 0.0F) + beside) + (1.0F - t) * (std::max(x, 0.0F) + beside);
    }
    args.loss(i) = sum / static_cast<float>(args.classes);
  }
}

const KernelRegistration naive_kernel{{.id = "bce_with_logits/cpu/naive",
                                       .summary = "one sum per row, terms in order",
                                       .run = &run_typed<BceWithLogitsArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_bce_with_logits
