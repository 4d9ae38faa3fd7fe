// Properties of the gradient of the binary cross-entropy (obligations of contracts/bce_with_logits_backward.yaml).
#include <algorithm>
#include <cmath>

#include "bce_with_logits_backward_obligations.hpp"
#include "falsify/engine/trial.hpp"
#include "falsify/properties/inputs/bce.hpp"

namespace assay::falsify {
namespace bce_with_logits_backward {
namespace {

enum Tensor { kLogits, kTargets, kWeights, kDloss, kDlogits };

}  // namespace
}  // namespace bce_with_logits_backward

void bce_with_logits_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  direct_labels(problem, strategy, random);
}

Outcome bce_with_logits_backward::linearity(Trial& trial) {
  const Problem problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("scale");
  const int s = static_cast<int>(random.either_sign(static_cast<double>(random.between(1, 6))));
  Problem scaled = problem;
  for (float& x : scaled.values[kDloss]) x = std::ldexp(x, s);
  return trial.scales(problem, scaled, {s});
}

Outcome bce_with_logits_backward::mirror(Trial& trial) {
  Random random = trial.random("mirror");
  const Mirrored both = mirrored_labels(trial.problem(Strategy::gaussian), random);
  const Run plain = trial.run(both.plain), mirrored = trial.run(both.mirrored);
  const auto oracle = trial.oracle(both.plain), other = trial.oracle(both.mirrored);
  std::vector<double> got, want, bound;
  for (std::size_t i = 0; i < plain.outputs[0].size(); ++i) {
    got.push_back(mirrored.outputs[0][i]);
    want.push_back(-static_cast<double>(plain.outputs[0][i]));
    bound.push_back(oracle[0][i].error + other[0][i].error);
  }
  return compare_within("dlogits", both.plain.shape(kDlogits), got, want, bound);
}

audit::Subject bce_with_logits_backward::audited() {
  return {.sums = {{.says = "dlogits[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 1},
                    .count = 1,
                    .left = {3},
                    .result = {4},
                    .scale = -1,
                    .background =
                        [](Problem& p) {
                          std::ranges::fill(p.values[0], -128.0F);
                          std::ranges::fill(p.values[1], 1.0F);
                          std::ranges::fill(p.values[2], 1.0F);
                        }}},
          .dims = {4, 64}};
}

}  // namespace assay::falsify
