// Properties of the gradient of the cross-entropy (obligations of contracts/cross_entropy_backward.yaml).
#include <algorithm>
#include <cmath>

#include "cross_entropy_backward_obligations.hpp"
#include "falsify/engine/trial.hpp"
#include "falsify/properties/shared/losses.hpp"

namespace assay::falsify {
namespace cross_entropy_backward {
namespace {

enum Tensor { kLogits, kTargets, kWeights, kLogsumexp, kNormalizer, kDloss, kDtotal, kDlogits };

}  // namespace
}  // namespace cross_entropy_backward

/// Sets logsumexp and normalizer to the values that a forward pass saves; in half the cases with NaN and infinities
/// these tensors have some, too.
void cross_entropy_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  const Index rows = problem.dims[0], classes = problem.dims[1];
  make_class_weights(problem.values[kWeights], random);
  if (strategy == Strategy::directed)
    direct_logits(problem.values[kLogits], problem.values[kTargets], rows, classes, random);
  if (strategy == Strategy::runs) tile_rows(problem.values[kLogits], rows, classes, random);
  if (strategy == Strategy::nonfinite && random.chance(0.5)) return;
  double weight = 0;
  for (Index i = 0; i < rows; ++i) {
    const float* const x = problem.values[kLogits].data() + i * classes;
    double m = x[0], sum = 0;
    for (Index j = 1; j < classes; ++j) m = std::max(m, static_cast<double>(x[j]));
    for (Index j = 0; j < classes; ++j) sum += std::exp(x[j] - m);
    problem.values[kLogsumexp][static_cast<std::size_t>(i)] = static_cast<float>(m + std::log(sum));
    weight += problem.values[kWeights][static_cast<std::size_t>(problem.values[kTargets][static_cast<std::size_t>(i)])];
  }
  problem.values[kNormalizer][0] = random.chance(0.5) && weight > 0 ? static_cast<float>(weight) : 1.0F;
}

Outcome cross_entropy_backward::linearity(Trial& trial) {
  const Problem problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("scale");
  const int s = static_cast<int>(random.between(1, 6)) * (random.chance(0.5) ? 1 : -1);
  Problem scaled = problem;
  for (int tensor : {kDloss, kDtotal})
    for (float& x : scaled.values[static_cast<std::size_t>(tensor)]) x = std::ldexp(x, s);
  return trial.scales(problem, scaled, {s});
}

Outcome cross_entropy_backward::row_sum(Trial& trial) {
  const Problem problem = trial.problem(Strategy::gaussian);
  const Index rows = problem.dims[0], classes = problem.dims[1];
  const Run run = trial.run(problem);
  const auto oracle = trial.oracle(problem);
  std::vector<double> sums, bounds;
  for (Index i = 0; i < rows; ++i) {
    double sum = 0, bound = 0, mass = 0, magnitude = 0;
    for (Index j = 0; j < classes; ++j) {
      const auto at = static_cast<std::size_t>(i * classes + j);
      sum += run.outputs[0][at];
      bound += oracle[0][at].error;
      magnitude += std::fabs(oracle[0][at].value);
      mass += std::exp(static_cast<double>(problem.values[kLogits][at]) -
                       problem.values[kLogsumexp][static_cast<std::size_t>(i)]);
    }
    const auto y = static_cast<std::size_t>(problem.values[kTargets][static_cast<std::size_t>(i)]);
    const double upstream = problem.values[kDloss][static_cast<std::size_t>(i)] +
                            static_cast<double>(problem.values[kDtotal][0]) / problem.values[kNormalizer][0];
    // The saved logsumexp is a float: probabilities sum to 1 only up to its rounding.
    sums.push_back(sum);
    bounds.push_back(bound + std::fabs(problem.values[kWeights][y] * upstream * (mass - 1)) + 0x1p-50 * magnitude);
  }
  Outcome outcome =
      compare_within("dlogits, sum of a row", Shape{rows}, sums, std::vector<double>(sums.size()), bounds);
  outcome.nonzero = outcome.elements;  // the claim is about zeros
  return outcome;
}

audit::Subject cross_entropy_backward::audited() {
  return {.sums = {{.says = "dlogits[0,0] of dloss and dtotal",
                    .terms = audit::Terms::values,
                    .dims = {4, 4},
                    .count = 2,
                    .left = {5},
                    .second = {6},
                    .result = {7},
                    .scale = -1,
                    .background = [](Problem& p) {
                      std::ranges::fill(p.values[2], 1.0F);
                      std::ranges::fill(p.values[3], 1e4F);  // p - 1 is -1
                      p.values[4][0] = 1;
                    }}}};
}

}  // namespace assay::falsify
