#include "falsify/properties/shared/rope_table.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {
namespace {

constexpr std::size_t kD = 2, kPlaces = 3;  // of both contracts' dims

std::vector<float>& values(Problem& problem, int tensor) { return problem.values[static_cast<std::size_t>(tensor)]; }

}  // namespace

void rope_table_inputs(Problem& problem, const RopeTableTensors& t, Strategy strategy, Random& random) {
  // Both elements of a pair may be selected: their sum is exact up to 2^24.
  if (strategy == Strategy::distinct_index)
    for (const int tensor : {t.from, t.cosines, t.sines}) keep_sums_exact(values(problem, tensor), 2);
  const bool exact =
      strategy == Strategy::distinct_index || strategy == Strategy::exact_integers || strategy == Strategy::one_hot;
  if (exact || random.chance(0.5)) return;
  const Index half = problem.dims[kD] / 2, places = problem.dims[kPlaces];
  if (strategy != Strategy::nonfinite) {
    const double theta = random.chance(0.5) ? 1e4 : 5e5, factor = random.chance(0.5) ? 1 : 1 + 0.5 * random.uniform();
    for (Index p = 0; p < places; ++p)
      for (Index i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(p) * std::pow(theta, static_cast<double>(-i) / static_cast<double>(half));
        const auto at = static_cast<std::size_t>(p * half + i);
        values(problem, t.cosines)[at] = static_cast<float>(factor * std::cos(angle));
        values(problem, t.sines)[at] = static_cast<float>(factor * std::sin(angle));
      }
  }
  const auto rows = static_cast<Index>(values(problem, t.positions).size());
  for (Index row = 0; row < rows;) {
    const Index length = random.between(1, rows - row), first = random.chance(0.5) ? 0 : random.between(0, places - 1);
    for (Index i = 0; i < length; ++i)
      values(problem, t.positions)[static_cast<std::size_t>(row + i)] =
          static_cast<float>(std::min(first + i, places - 1));
    row += length;
  }
}

Outcome rope_table_quarter_turns(Trial& trial, const RopeTableTensors& t, int direction) {
  Problem problem = trial.problem(Strategy::gaussian);
  const bool turned = trial.random("turn").chance(0.5);
  std::ranges::fill(values(problem, t.cosines), turned ? 0.0F : 1.0F);
  std::ranges::fill(values(problem, t.sines), turned ? 1.0F : 0.0F);
  const std::vector<float>& from = values(problem, t.from);
  const auto d = static_cast<std::size_t>(problem.dims[kD]), half = d / 2;
  std::vector<Bounded> want;
  for (std::size_t e = 0; e < from.size(); ++e) {
    const bool first = problem.params[0] != 0 ? e % 2 == 0 : e % d < half;
    const std::size_t other = problem.params[0] != 0 ? e ^ 1U : first ? e + half : e - half;
    const float across = first == (direction > 0) ? -from[other] : from[other];
    want.push_back(Bounded(turned ? across : from[e], 0, 0, false));
  }
  const Run run = trial.run(problem);
  return compare(Tier::exact, trial.op().tensors[static_cast<std::size_t>(t.to)].name, problem.shape(t.to),
                 run.outputs[0], want, problem.dtype(t.to));
}

Outcome rope_table_scaling(Trial& trial, const RopeTableTensors& t) {
  Random random = trial.random("scaling");
  const int a = static_cast<int>(random.between(1, 3));
  Problem problem = trial.problem(Strategy::gaussian);
  // Products that almost cancel stay in the range where 16 bits of storage are all significant.
  if (problem.storage != DType::f32)
    for (float& x : values(problem, t.from))
      x = stored(problem.storage, std::copysign(256 * (1 + std::fmin(std::fabs(x), 2.0F)), x));
  Problem scaled = problem;
  const bool tables = random.chance(0.5);
  for (const int tensor : tables ? std::vector{t.cosines, t.sines} : std::vector{t.from})
    for (float& x : values(scaled, tensor)) x = std::ldexp(x, a);
  return trial.scales(problem, scaled, {a});
}

Outcome rope_table_relabelling(Trial& trial, const RopeTableTensors& t) {
  const Problem problem = trial.problem();
  Problem reversed = problem;
  const Index half = problem.dims[kD] / 2, places = problem.dims[kPlaces];
  for (const int tensor : {t.cosines, t.sines}) {
    std::vector<float>& table = values(reversed, tensor);
    for (Index p = 0; p < places / 2; ++p)
      std::swap_ranges(table.begin() + p * half, table.begin() + (p + 1) * half,
                       table.begin() + (places - 1 - p) * half);
  }
  for (float& p : values(reversed, t.positions)) p = static_cast<float>(places - 1) - p;
  const Run plain = trial.run(problem), moved = trial.run(reversed);
  return trial.related(
      compare_bits(trial.op().tensors[static_cast<std::size_t>(t.to)].name, problem.shape(t.to), moved.outputs[0],
                   plain.outputs[0], "tables in reverse, against the tables as they are"),
      Related::always, {{problem, plain}, {reversed, moved}});
}

}  // namespace assay::falsify
