#include "falsify/properties/shared/cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/half.hpp"
#include "falsify/properties/shared/losses.hpp"

namespace assay::falsify {
namespace {

enum Tensor { kLogits, kTargets, kWeights, kLoss, kTotal };

double bound_of(const Bounded& b) { return b.may_overflow ? INFINITY : b.error; }

}  // namespace

void cross_entropy_inputs(Problem& problem, Strategy strategy, Random& random) {
  make_class_weights(problem.values[kWeights], random);
  if (strategy == Strategy::directed)
    direct_logits(problem.values[kLogits], problem.values[kTargets], problem.dims[0], problem.dims[1], random);
  if (strategy == Strategy::runs) tile_rows(problem.values[kLogits], problem.dims[0], problem.dims[1], random);
}

Outcome cross_entropy_shift(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("shift");
  for (float& x : problem.values[kLogits]) x = std::round(x * 8) / 8;
  Problem shifted = problem;
  const Index rows = problem.dims[0], classes = problem.dims[1];
  // So far that sums of eighths below 8 are stored exactly.
  const Index far = problem.storage == DType::f16 ? 240 : problem.storage == DType::bf16 ? 24 : 4000;
  for (Index i = 0; i < rows; ++i) {
    const auto c = static_cast<float>(random.between(-far, far));
    for (Index j = 0; j < classes; ++j) shifted.values[kLogits][static_cast<std::size_t>(i * classes + j)] += c;
  }
  const Run plain = trial.run(problem), moved = trial.run(shifted);
  Outcome outcome = compare_bits("loss", problem.shape(kLoss), moved.outputs[0], plain.outputs[0],
                                 "shifted logits, against the plain ones");
  outcome &= compare_bits("total", problem.shape(kTotal), moved.outputs[1], plain.outputs[1],
                          "shifted logits, against the plain ones");
  return trial.related(std::move(outcome), Related::unless_lost, {{problem, plain}, {shifted, moved}});
}

Outcome cross_entropy_one_hot_limit(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("limit");
  const Index rows = problem.dims[0], classes = problem.dims[1];
  std::vector<double> want(static_cast<std::size_t>(rows));
  for (Index i = 0; i < rows; ++i) {
    // The last k classes tie far above all others: exp(-200) is below the last place of 1.
    const Index k = random.between(1, std::min<Index>(classes, random.chance(0.5) ? 4 : 256));
    const double distance = stored(problem.storage, static_cast<float>(random.between(200, 1000)));
    for (Index j = 0; j < classes; ++j)
      problem.values[kLogits][static_cast<std::size_t>(i * classes + j)] =
          static_cast<float>(j >= classes - k ? 0 : -distance);
    const auto y = static_cast<std::size_t>(problem.values[kTargets][static_cast<std::size_t>(i)]);
    const bool among = static_cast<Index>(y) >= classes - k;
    want[static_cast<std::size_t>(i)] =
        static_cast<double>(problem.values[kWeights][y]) * ((among ? 0 : distance) + std::log(static_cast<double>(k)));
  }
  const Run run = trial.run(problem);
  const auto oracle = trial.oracle(problem);
  std::vector<double> bound(want.size());
  for (std::size_t i = 0; i < bound.size(); ++i) bound[i] = bound_of(oracle[0][i]) + 0x1p-50 * want[i];
  return compare_within("loss", problem.shape(kLoss), widened(run.outputs[0]), want, bound);
}

Outcome cross_entropy_row_permutation(Trial& trial) {
  const Problem problem = trial.problem();
  const auto rows = static_cast<std::size_t>(problem.dims[0]), classes = static_cast<std::size_t>(problem.dims[1]);
  std::vector<std::size_t> from(rows);
  std::iota(from.begin(), from.end(), std::size_t{0});
  Random random = trial.random("permutation");
  for (std::size_t i = rows; i > 1; --i) std::swap(from[i - 1], from[random.below(i)]);
  Problem permuted = problem;
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(problem.values[kLogits].begin() + static_cast<std::ptrdiff_t>(from[i] * classes), classes,
                permuted.values[kLogits].begin() + static_cast<std::ptrdiff_t>(i * classes));
    permuted.values[kTargets][i] = problem.values[kTargets][from[i]];
  }
  const Run plain = trial.run(problem), run = trial.run(permuted);
  const auto oracle = trial.oracle(permuted);
  std::vector<double> got, want, bound;
  for (std::size_t i = 0; i < rows; ++i) {
    const float there = run.outputs[0][i], here = plain.outputs[0][from[i]];
    const bool finite = std::isfinite(there) && std::isfinite(here);
    if (!finite && !oracle[0][i].may_overflow && std::isnan(there) == std::isnan(here) &&
        (std::isnan(here) || there == here))
      continue;
    got.push_back(there);
    want.push_back(here);
    bound.push_back(oracle[0][i].may_overflow ? INFINITY : 2 * oracle[0][i].error);
    if (!finite && oracle[0][i].may_overflow) got.back() = want.back() = 0;
  }
  return compare_within("loss", Shape{static_cast<Index>(got.size())}, got, want, bound);
}

Outcome cross_entropy_weight_scaling(Trial& trial, int of_last_in_mean, int of_last_in_sum) {
  const Problem problem = trial.problem(Strategy::gaussian);
  Problem doubled = problem;
  for (float& w : doubled.values[kWeights]) w *= 2;
  const bool sum = problem.params[0] == 2;
  return trial.scales(problem, doubled, {1, sum ? 1 : 0, 0, sum ? of_last_in_sum : of_last_in_mean});
}

void losses_of_128(Problem& p) {
  const auto classes = static_cast<std::size_t>(p.dims[1]);
  std::ranges::fill(p.values[kLogits], -1e4F);
  for (std::size_t i = 0; i < p.values[kTargets].size(); ++i) {
    p.values[kTargets][i] = static_cast<float>(i % classes);
    p.values[kLogits][i * classes + i % classes] = -128;
    p.values[kLogits][i * classes + (i + 1) % classes] = 0;
  }
  p.params[0] = 2;
}

}  // namespace assay::falsify
