#include "falsify/properties/shared/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/half.hpp"

namespace assay::falsify {

namespace {

/// Returns the position up to `last` whose angle is next to a multiple of a quarter turn: the largest denominator of a
/// convergent of the frequency in quarter turns.
Index position_near_an_axis(long double frequency, Index last) {
  long double rest = frequency * 2 / std::numbers::pi_v<long double>;
  long double latest = 0, before = 1;
  while (true) {
    const long double digit = std::floor(rest), next = digit * latest + before;
    if (next > static_cast<long double>(last)) return static_cast<Index>(latest);
    before = latest;
    latest = next;
    if (rest - digit < 0x1p-40L) return static_cast<Index>(latest);
    rest = 1 / (rest - digit);
  }
}

/// Places each row far out where one of its pairs lies next to an axis, the best of eight, and clears one element of
/// each pair: the small component of the rotated pair then shows errors of the angle that no other draw does.
void near_axes(Problem& problem, Random& random) {
  const Index last = problem.op->tensors[kPositions].most(problem.dims), d = problem.dims[2];
  const std::size_t width = static_cast<std::size_t>(problem.dims[1] * d);
  for (std::size_t row = 0; row < problem.values[kPositions].size(); ++row) {
    long double largest = 0;
    for (int tries = 0; tries < 8; ++tries) {
      const auto pair = static_cast<long double>(random.between(0, d / 2 - 1));
      const long double frequency = std::pow(static_cast<long double>(problem.params[kTheta]), -2 * pair / d);
      const Index position = position_near_an_axis(frequency, last);
      const long double distance = std::fabs(std::remainder(frequency * position, std::numbers::pi_v<long double> / 2));
      if (position <= largest * distance) continue;
      largest = position / distance;
      problem.values[kPositions][row] = static_cast<float>(position);
    }
    const bool first = random.chance(0.5), neighbours = problem.params[kInterleaved] != 0;
    for (std::size_t e = 0; e < width; ++e) {
      const Index in_head = static_cast<Index>(e) % d;
      if ((neighbours ? in_head % 2 == 0 : in_head < d / 2) == first) problem.values[kFrom][row * width + e] = 0;
    }
  }
}

}  // namespace

void rope_positions(Problem& problem, Strategy strategy, Random& random) {
  std::vector<float>& positions = problem.values[kPositions];
  const auto rows = static_cast<Index>(positions.size());
  if (rows == 0 || strategy == Strategy::distinct_index || random.chance(0.25)) return;
  if (strategy != Strategy::nonfinite && random.chance(0.2)) return near_axes(problem, random);
  const Index last = problem.op->tensors[kPositions].most(problem.dims), longest = random.between(1, rows);
  const bool alike = random.chance(0.25);  // sequences of one length
  for (Index row = 0; row < rows;) {
    const Index length = std::min(rows - row, alike ? longest : random.between(1, longest));
    const Index first = random.chance(0.4)   ? 0
                        : random.chance(0.5) ? random.between(0, std::min<Index>(last, 131072))
                                             : random.between(0, last);
    for (Index i = 0; i < length; ++i)
      positions[static_cast<std::size_t>(row + i)] = static_cast<float>(std::min(first + i, last));
    row += length;
  }
}

Problem rope_problem(const Trial& trial) {
  Problem problem = trial.problem();
  if (problem.dims[0] == 0) problem = trial.problem({1, problem.dims[1], problem.dims[2]});
  if (problem.storage == DType::f16)
    for (float& x : problem.values[0])
      if (!(std::fabs(x) <= 8192)) x = std::copysign(1.0F, x);
  return problem;
}

Problem rope_row_at(const Trial& trial, double position) {
  Problem problem = rope_problem(trial);
  const auto width = static_cast<std::size_t>(problem.dims[1] * problem.dims[2]);
  problem.dims[0] = 1;
  problem.values[0].resize(width);
  problem.params[kFloat32Angle] = 0;
  problem.values[kPositions] = {static_cast<float>(position)};
  return problem;
}

Outcome rope_identity(Trial& trial) {
  Problem problem = rope_row_at(trial, 0);
  problem.params[kFloat32Angle] = trial.the_case().params[kFloat32Angle];
  const Run run = trial.run(problem);
  std::vector<Bounded> want;
  for (float x : problem.values[0]) want.push_back(Bounded(x, 0, 0, false));
  return compare(Tier::exact, trial.op().tensors[kTo].name, problem.shape(kTo), run.outputs[0], want,
                 problem.dtype(kTo));
}

Outcome rope_scaling(Trial& trial) {
  const int a = static_cast<int>(trial.random("scaling").between(1, 3));
  Problem problem = rope_problem(trial);
  if (problem.storage != DType::f32) {
    // Between 256 and 768: only a pair that almost cancels gives a result below the range where storage keeps 11 bits.
    for (float& x : problem.values[0])
      x = stored(problem.storage, std::copysign(256 * (1 + std::fmin(std::fabs(x), 2.0F)), x));
  }
  if (!scales_exactly(problem, 0, a)) problem = trial.problem(Strategy::gaussian);
  Problem scaled = problem;
  for (float& x : scaled.values[0]) x = std::ldexp(x, a);
  return trial.scales(problem, scaled, {a});
}

Outcome rope_composition(Trial& trial) {
  Random random = trial.random("positions");
  const auto a = static_cast<double>(random.below(65536)), b = static_cast<double>(random.below(65536));
  const Problem first = rope_row_at(trial, a), whole = rope_row_at(trial, a + b);
  const Run once = trial.run(first), at_once = trial.run(whole);
  Problem second = first;
  second.values[0] = once.outputs[0];
  second.values[kPositions] = {static_cast<float>(b)};
  const Run twice = trial.run(second);
  const std::vector<double> of_first = bounds_of(trial.oracle(first)[0]),
                            of_second = bounds_of(trial.oracle(second)[0]),
                            of_whole = bounds_of(trial.oracle(whole)[0]);
  const Index half = first.dims[2] / 2;
  std::vector<double> got, want, bound;
  for (std::size_t e = 0; e < twice.outputs[0].size(); ++e) {
    // A rotation carries the error of either element of a pair into both.
    const auto d = static_cast<std::size_t>(2 * half), h = static_cast<std::size_t>(half), in_head = e % d;
    const std::size_t other = first.params[kInterleaved] != 0 ? e ^ 1U : in_head < h ? e + h : e - h;
    got.push_back(twice.outputs[0][e]);
    want.push_back(at_once.outputs[0][e]);
    bound.push_back((of_first[e] + of_first[other] + of_second[e] + of_whole[e]) * (1 + 0x1p-20));
  }
  return compare_within(trial.op().tensors[kTo].name, first.shape(kTo), got, want, bound);
}

}  // namespace assay::falsify
