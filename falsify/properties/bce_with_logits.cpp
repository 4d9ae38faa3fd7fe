// Properties of the binary cross-entropy (obligations of contracts/bce_with_logits.yaml).
#include <algorithm>
#include <cmath>

#include "bce_with_logits_obligations.hpp"
#include "falsify/engine/trial.hpp"
#include "falsify/properties/inputs/bce.hpp"

namespace assay::falsify {
namespace bce_with_logits {
namespace {

enum Tensor { kLogits, kTargets, kWeights, kLoss };

/// Returns worst-case bounds of the losses.
std::vector<double> bounds(const Trial& trial, const Problem& problem) {
  std::vector<double> b;
  const auto oracle = trial.oracle(problem);
  for (const Bounded& x : oracle[0]) b.push_back(x.may_overflow ? INFINITY : x.error);
  return b;
}

}  // namespace
}  // namespace bce_with_logits

void bce_with_logits::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  direct_labels(problem, strategy, random);
}

Outcome bce_with_logits::saturation(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("saturation");
  const Index rows = problem.dims[0], classes = problem.dims[1];
  std::vector<double> want(static_cast<std::size_t>(rows));
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < classes; ++j) {
      const auto at = static_cast<std::size_t>(i * classes + j);
      const double sign = random.sign(), x = 200 * sign;
      const bool label = random.chance(0.5);
      problem.values[kLogits][at] = static_cast<float>(x);
      problem.values[kTargets][at] = label ? 1.0F : 0.0F;
      if (label != (sign > 0))
        want[static_cast<std::size_t>(i)] +=
            200 * (label ? static_cast<double>(problem.values[kWeights][static_cast<std::size_t>(j)]) : 1.0) /
            static_cast<double>(classes);
    }
  const Run run = trial.run(problem);
  std::vector<double> bound = bounds(trial, problem);
  for (std::size_t i = 0; i < bound.size(); ++i) bound[i] += 0x1p-45 * want[i];  // this sum is in double
  return compare_within("loss", problem.shape(kLoss), widened(run.outputs[0]), want, bound);
}

Outcome bce_with_logits::mirror(Trial& trial) {
  Random random = trial.random("mirror");
  const Mirrored both = mirrored_labels(trial.problem(Strategy::gaussian), random);
  const Run plain = trial.run(both.plain), mirrored = trial.run(both.mirrored);
  std::vector<double> bound = bounds(trial, both.plain), other = bounds(trial, both.mirrored);
  for (std::size_t i = 0; i < bound.size(); ++i) bound[i] += other[i];
  return compare_within("loss", both.plain.shape(kLoss), widened(mirrored.outputs[0]), widened(plain.outputs[0]),
                        bound);
}

Outcome bce_with_logits::soft_targets(Trial& trial) {
  const Problem problem = trial.problem(Strategy::gaussian);
  std::vector<double> got, want(static_cast<std::size_t>(problem.dims[0])), bound(want.size());
  for (const auto& [t, share] : {std::pair(0.25F, -1.0), std::pair(0.0F, 0.75), std::pair(1.0F, 0.25)}) {
    Problem at = problem;
    for (float& x : at.values[kTargets]) x = t;
    const std::vector<double> loss = widened(trial.run(at).outputs[0]), own = bounds(trial, at);
    for (std::size_t i = 0; i < want.size(); ++i) {
      bound[i] += std::fabs(share) * own[i];
      if (share > 0) want[i] += share * loss[i];
    }
    if (share < 0) got = loss;
  }
  return compare_within("loss", problem.shape(kLoss), got, want, bound);
}

audit::Subject bce_with_logits::audited() {
  return {.sums = {{.says = "loss[0] over classes",
                    .terms = audit::Terms::products,
                    .dims = {4, 64},
                    .count = 64,
                    .left = {1},
                    .right = {2},
                    .result = {3},
                    .scale = 2,
                    .background = [](Problem& p) { std::ranges::fill(p.values[0], -128.0F); }}}};
}

}  // namespace assay::falsify
