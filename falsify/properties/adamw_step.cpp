// Properties of AdamW (obligations of contracts/adamw_step.yaml).
#include <bit>
#include <cmath>
#include <cstdint>

#include "adamw_step_obligations.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify {
namespace adamw_step {
namespace {

enum Tensor { kP, kM, kV, kG, kRounded };
enum Param { kLr, kBeta1, kBeta2, kEps, kDecay, kStep };

double f32(double x) { return static_cast<double>(static_cast<float>(x)); }
double decay_of(const Problem& problem) { return 1 - f32(problem.params[kLr]) * f32(problem.params[kDecay]); }

double bound_of(const Bounded& b) { return b.may_overflow ? INFINITY : b.error; }

/// Replaces the low bits of x, which a format drops, by half a unit of what it keeps.
float halfway(DType dtype, float x) {
  const std::uint32_t dropped = dtype == DType::f16 ? 13 : dtype == DType::bf16 ? 16 : 0;
  if (dropped == 0) return x;
  const std::uint32_t kept = std::bit_cast<std::uint32_t>(x) >> dropped << dropped;
  return std::bit_cast<float>(kept | std::uint32_t{1} << (dropped - 1));
}

void fill(std::vector<float>& values, double scale, Random& random) {
  for (float& x : values) x = static_cast<float>(scale * random.gaussian());
}

}  // namespace
}  // namespace adamw_step

/// Makes v, a mean of squares, nonnegative, except for a few values if results need not be finite. Directed: gradients
/// and roots of v near eps, parameters at or near 0 (next to a p of 1 the update is below a last place), states of the
/// first step and of later ones, no gradient; parameters that stay, and whose copies are ties.
void adamw_step::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  auto &p = problem.values[kP], &m = problem.values[kM], &v = problem.values[kV], &g = problem.values[kG];
  for (float& x : v) x = std::fabs(x);
  if (strategy == Strategy::nonfinite)  // a negative v is reported, not repaired
    for (float& x : v)
      if (random.chance(0.1)) x = -x;
  if (strategy != Strategy::directed) return;
  const double eps = problem.params[kEps];
  const double scale = random.chance(0.5) ? eps : std::ldexp(1.0, -static_cast<int>(random.between(0, 12)));
  fill(g, random.chance(0.1) ? 0 : scale, random);
  fill(m, random.chance(0.3) ? 0 : scale, random);
  for (float& x : v) x = static_cast<float>(std::pow(scale * random.gaussian(), 2));
  if (random.chance(0.3)) fill(v, 0, random);
  // A rate of 0 must leave parameters of every size as they are, also those halfway between two numbers of the copy.
  const double rate = problem.params[kLr] > 0 ? problem.params[kLr] : 1;
  fill(p, random.chance(0.4) ? 0 : rate * std::ldexp(1.0, static_cast<int>(random.between(-8, 8))), random);
  if (problem.params[kLr] == 0)
    for (float& x : p)
      if (random.chance(0.5)) x = halfway(problem.storage, x);
}

Outcome adamw_step::decays_only(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  for (int tensor : {kM, kG})
    std::fill(problem.values[static_cast<std::size_t>(tensor)].begin(),
              problem.values[static_cast<std::size_t>(tensor)].end(), 0.0F);
  const Run run = trial.run(problem);
  return trial.against_oracle(Tier::worst_case, problem, run);
}

Outcome adamw_step::copy_aside(Trial& trial) {
  const Problem drawn = trial.problem();
  Problem without = drawn, with = drawn;
  without.dims[1] = 0, with.dims[1] = 1;
  const Run alone = trial.run(without), beside = trial.run(with);
  Outcome outcome;
  for (const int t : {kP, kM, kV})
    outcome &= compare_bits(trial.op().tensors[static_cast<std::size_t>(t)].name, drawn.shape(t),
                            beside.outputs[static_cast<std::size_t>(t)], alone.outputs[static_cast<std::size_t>(t)],
                            "with a copy, against without one");
  return trial.related(outcome, Related::always, {{without, alone}, {with, beside}});
}

Outcome adamw_step::first_step(Trial& trial) {
  Problem problem = trial.problem();
  problem.params[kStep] = 1;
  for (int tensor : {kM, kV})
    std::fill(problem.values[static_cast<std::size_t>(tensor)].begin(),
              problem.values[static_cast<std::size_t>(tensor)].end(), 0.0F);
  const Run run = trial.run(problem);
  const auto oracle = trial.oracle(problem);
  std::vector<double> got(run.outputs[0].begin(), run.outputs[0].end()), want, bound;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double g = problem.values[kG][i], decayed = decay_of(problem) * problem.values[kP][i];
    const double update = f32(problem.params[kLr]) * g / (std::fabs(g) + f32(problem.params[kEps]));
    want.push_back(decayed - update);
    bound.push_back(bound_of(oracle[0][i]) + 0x1p-48 * (std::fabs(decayed) + std::fabs(update)));
  }
  return compare_within("p", problem.shape(kP), got, want, bound);
}

/// m and v are sums over the same gradients: by Cauchy and Schwarz, at step t,
///   |m| <= sum_j (1 - b1) b1^j |g_j| <= sqrt(v) (1 - b1) / sqrt(1 - b2) sqrt(sum_(j < t) (b1^2 / b2)^j).
Outcome adamw_step::trajectory(Trial& trial) {
  constexpr int kSteps = 8;
  Problem problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("gradients");
  const auto n = problem.values[kP].size();
  for (int tensor : {kM, kV})
    std::fill(problem.values[static_cast<std::size_t>(tensor)].begin(),
              problem.values[static_cast<std::size_t>(tensor)].end(), 0.0F);
  const ArithmeticScope scope(trial.kernel().arithmetic);
  std::vector<std::vector<Bounded>> state(5, std::vector<Bounded>(n));
  for (std::size_t i = 0; i < n; ++i) state[kP][i] = Bounded::input(problem.values[kP][i]);
  const double b1 = f32(problem.params[kBeta1]), b2 = f32(problem.params[kBeta2]), size = f32(problem.params[kLr]);
  double powers = 0;
  Outcome outcome;
  for (int t = 1; t <= kSteps; ++t) {
    problem.params[kStep] = t;
    fill(problem.values[kG], 1, random);
    for (std::size_t i = 0; i < n; ++i) state[kG][i] = Bounded::input(problem.values[kG][i]);
    std::vector<View<Bounded>> views;
    for (int tensor : {kP, kM, kV, kG, kRounded})
      views.emplace_back(state[static_cast<std::size_t>(tensor)].data(), problem.shape(tensor));
    falsify::oracle("adamw_step").bounded(views, problem.params);
    const std::vector<float> before = problem.values[kP];
    const Run run = trial.run(problem);
    for (std::size_t o : {0U, 1U, 2U}) problem.values[o] = run.outputs[o];
    powers += std::pow(b1 * b1 / b2, t - 1);
    const double most = size / (1 - std::pow(b1, t)) * std::sqrt(1 - std::pow(b2, t)) * (1 - b1) / std::sqrt(1 - b2) *
                        std::sqrt(powers);
    std::vector<double> moved, none(n), limit;
    for (std::size_t i = 0; i < n; ++i) {
      moved.push_back(run.outputs[0][i] - decay_of(problem) * before[i]);
      limit.push_back(most + 2 * bound_of(state[kP][i]));
    }
    Outcome step = compare(Tier::worst_case, "p", problem.shape(kP), run.outputs[0], state[kP]);
    step &= compare(Tier::worst_case, "m", problem.shape(kM), run.outputs[1], state[kM]);
    step &= compare(Tier::worst_case, "v", problem.shape(kV), run.outputs[2], state[kV]);
    const double tightness = step.worst;
    step &= compare_within("p, size of its update", problem.shape(kP), moved, none, limit);
    step.worst = tightness;  // the distance of an update from its limit is no measure of accuracy
    outcome &= step;
    if (outcome.finding) break;
  }
  return outcome;
}

audit::Subject adamw_step::audited() {
  return {.sums = {{.says = "p[0] without gradient and decay",
                    .terms = audit::Terms::values,
                    .dims = {64, 0},
                    .count = 1,
                    .left = {0},
                    .result = {0},
                    .background = [](Problem& p) { p.params[4] = 0; }}}};
}

}  // namespace assay::falsify
