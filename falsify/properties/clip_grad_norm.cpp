// Properties of clipping (obligations of contracts/clip_grad_norm.yaml).
#include <cmath>

#include "clip_grad_norm_obligations.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify {
namespace clip_grad_norm {
namespace {

double norm_of(const std::vector<float>& g) {
  double squares = 0;
  for (float x : g) squares += static_cast<double>(x) * x;
  return std::sqrt(squares);
}

/// Scales g so that its norm is `share` times the limit. All zeros stay zeros.
void scale_to(Problem& problem, double share) {
  const double norm = norm_of(problem.values[0]);
  if (!(norm > 0)) return;
  const double factor = share * problem.params[0] / norm;
  for (float& x : problem.values[0]) x = static_cast<float>(x * factor);
}

}  // namespace
}  // namespace clip_grad_norm

/// Directed: norms far below, at, just beyond and far beyond the limit.
void clip_grad_norm::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy != Strategy::directed) return;
  static constexpr double kShares[] = {1e-3, 0.5, 0.995, 0.999999, 1, 1.000001, 1.001, 2, 1e6};
  scale_to(problem, kShares[random.below(std::size(kShares))]);
}

Outcome clip_grad_norm::below_limit(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("share");
  scale_to(problem, 0.9 * random.uniform());
  const Run run = trial.run(problem);
  return compare_bits("g", problem.shape(0), run.outputs[0], problem.values[0],
                      "a gradient within the limit, against itself");
}

Outcome clip_grad_norm::at_limit(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  if (problem.values[0].empty()) problem = trial.problem({1});
  for (float& x : problem.values[0]) x = x == 0 || !std::isfinite(x) ? 1.0F : x;
  Random random = trial.random("share");
  scale_to(problem, 1.5 + 100 * random.uniform());
  const auto given = [&](std::size_t param) { return static_cast<double>(static_cast<float>(problem.params[param])); };
  const double limit = given(0), eps = given(1), before = norm_of(problem.values[0]);
  const Run run = trial.run(problem);
  const auto oracle = trial.oracle(problem);
  double errors = 0;
  for (const auto& x : oracle[0]) errors += std::pow(x.error, 2);
  const double got[] = {norm_of(run.outputs[0])}, want[] = {limit * before / (before + eps)};
  const double bound[] = {std::sqrt(errors) * (1 + 0x1p-40) + 0x1p-40 * want[0]};
  return compare_within("g, its norm", Shape{1}, got, want, bound);
}

audit::Subject clip_grad_norm::audited() {
  return {.sums = {{.says = "the squares of norm over n",
                    .terms = audit::Terms::squares,
                    .dims = {32},
                    .count = 32,
                    .left = {0},
                    .result = {1}}},
          .no_rows = "the norm is of all elements"};
}

}  // namespace assay::falsify
