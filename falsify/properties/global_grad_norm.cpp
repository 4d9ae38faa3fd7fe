// Properties of the global norm (obligations of contracts/global_grad_norm.yaml).
#include <cmath>

#include "falsify/engine/trial.hpp"
#include "global_grad_norm_obligations.hpp"

namespace assay::falsify {
namespace global_grad_norm {
namespace {

double bound_of(const Bounded& b) { return b.may_overflow ? INFINITY : b.error; }

}  // namespace
}  // namespace global_grad_norm

Outcome global_grad_norm::pythagoras(Trial& trial) {
  Random random = trial.random("places");
  // Occasionally more elements than a thousand blocks with four elements a thread cover in one iteration.
  Problem problem =
      random.chance(0.03) ? trial.problem({random.between(1 << 20, 3 << 19)}) : trial.problem(Strategy::gaussian);
  if (problem.values[0].empty()) problem = trial.problem({1});
  std::vector<float>& g = problem.values[0];
  std::fill(g.begin(), g.end(), 0.0F);
  const double scale = random.either_sign(std::ldexp(1.0, static_cast<int>(random.between(-20, 20))));
  g.back() = static_cast<float>(3 * scale);
  double squares = 9;
  for (double x : {4.0, 12.0}) {
    float& place = g[random.below(g.size())];
    if (place != 0) continue;
    place = static_cast<float>(x * scale);
    squares += x * x;
  }
  const Run run = trial.run(problem);
  const auto oracle = trial.oracle(problem);
  const double got[] = {run.outputs[0][0]}, want[] = {std::sqrt(squares) * std::fabs(scale)};
  const double bound[] = {bound_of(oracle[0][0]) + 0x1p-50 * want[0]};
  return compare_within("norm", problem.shape(1), got, want, bound);
}

Outcome global_grad_norm::parts(Trial& trial) {
  const Problem problem = trial.problem(Strategy::gaussian);
  const std::vector<float>& g = problem.values[0];
  Random random = trial.random("cut");
  const auto cut = static_cast<std::ptrdiff_t>(random.below(g.size() + 1));
  double squares = 0, error = 0;
  const auto norm_of = [&](std::vector<float> part) {
    const Problem own{&trial.op(), {std::ssize(part)}, {}, {std::move(part), {}}};
    const double norm = trial.run(own).outputs[0][0];
    const auto oracle = trial.oracle(own);
    squares += norm * norm;
    error += bound_of(oracle[0][0]);  // the norm of two errors is at most their sum
  };
  norm_of({g.begin(), g.begin() + cut});
  norm_of({g.begin() + cut, g.end()});
  const Run run = trial.run(problem);
  const auto oracle = trial.oracle(problem);
  const double got[] = {run.outputs[0][0]}, want[] = {std::sqrt(squares)};
  const double bound[] = {bound_of(oracle[0][0]) + error + 0x1p-50 * want[0]};
  return compare_within("norm", problem.shape(1), got, want, bound);
}

audit::Subject global_grad_norm::audited() {
  return {.sums = {{.says = "the squares of norm over n",
                    .terms = audit::Terms::squares,
                    .dims = {32},
                    .count = 32,
                    .left = {0},
                    .result = {1}}}};
}

}  // namespace assay::falsify
