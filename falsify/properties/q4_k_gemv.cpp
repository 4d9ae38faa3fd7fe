// Properties of y = W · x for W in Q4_K super-blocks (obligations of contracts/q4_k_gemv.yaml).
#include "q4_k_gemv_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/elementwise.hpp"
#include "falsify/properties/shared/matrices.hpp"
#include "falsify/properties/shared/products.hpp"
#include "falsify/properties/shared/q4_k.hpp"

namespace assay::falsify {
namespace q4_k_gemv {
namespace {

using q4_k::kBytes;
using q4_k::kValues;

struct Parts {
  Index rows, k;
  std::vector<float>& blocks;
  std::vector<float>& x;
};
Parts parts_of(Problem& problem) { return {problem.dims[0], problem.dims[1], problem.values[0], problem.values[1]}; }

Problem with_elements(const Trial& trial) {
  std::vector<Index> dims = trial.the_case().dims;
  for (Index& d : dims) d = std::max<Index>(d, 1);
  return trial.problem(dims);
}

}  // namespace
}  // namespace q4_k_gemv

void q4_k_gemv::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  const Parts p = parts_of(problem);
  q4_k::make_product(p.blocks, p.rows, p.x, 1, p.k, strategy, random);
}

Outcome q4_k_gemv::columns(Trial& trial) {
  Problem problem = with_elements(trial);
  const Parts p = parts_of(problem);
  Random random = trial.random("column");
  const Index column = random.between(0, p.k - 1);
  std::ranges::fill(p.x, 0.0F);
  p.x[static_cast<std::size_t>(column)] = 1;
  std::vector<Bounded> want;
  for (Index i = 0; i < p.rows; ++i)
    want.emplace_back(q4_k::block_of(p.blocks, p.k, i, column / kValues).decoded(column % kValues));
  const Run run = trial.run(problem);
  if (!trial.holds_floats()) return trial.against_oracle(Tier::worst_case, problem, run);
  return compare(Tier::exact, "y", problem.shape(2), run.outputs[0], want);
}

Outcome q4_k_gemv::padding(Trial& trial) {
  Random random = trial.random("padding");
  const Problem plain = trial.problem(q4_k::ragged(trial, random));
  if (!q4_k::has_padding(plain)) return q4_k::no_padding();
  Problem problem = plain;
  q4_k::scramble_padding(problem.values[0], problem.dims[0], problem.dims[1], random);
  const Run before = trial.run(plain), after = trial.run(problem);
  Outcome outcome = trial.against_oracle(Tier::worst_case, problem, after);
  return outcome &=
         trial.related(compare_bits("y", problem.shape(2), after.outputs[0], before.outputs[0], "another padding"),
                       Related::always, {{plain, before}, {problem, after}});
}

Outcome q4_k_gemv::scaling(Trial& trial) { return scales_with(trial, {1}); }

Outcome q4_k_gemv::linearity(Trial& trial) {
  Problem first = trial.problem();
  Problem second = first, sum = first;
  Random random = trial.random("linearity");
  // Multiples of 2^-10 below 2^12: any two of them add exactly.
  const auto on_grid = [](double x) {
    return static_cast<float>(std::ldexp(std::round(std::ldexp(std::fmod(x, 4096.0), 10)), -10));
  };
  for (std::size_t i = 0; i < first.values[1].size(); ++i) {
    first.values[1][i] = on_grid(first.values[1][i]);
    second.values[1][i] = on_grid(random.gaussian());
    sum.values[1][i] = first.values[1][i] + second.values[1][i];
  }
  std::vector<double> parts = widened(trial.run(first).outputs[0]), bound = result_bounds(trial, first);
  add(parts, widened(trial.run(second).outputs[0]));
  const std::vector<double> whole = widened(trial.run(sum).outputs[0]);
  add(bound, result_bounds(trial, second));
  add(bound, result_bounds(trial, sum));
  return compare_within("y", sum.shape(2), whole, parts, bound);
}

Outcome q4_k_gemv::block_additivity(Trial& trial) {
  Problem problem = trial.problem();
  const Parts p = parts_of(problem);
  Random random = trial.random("split");
  const Index count = q4_k::blocks_of(p.k), cut = random.between(0, count), middle = std::min(cut * kValues, p.k);
  const auto part = [&](Index from, Index to, Index first, Index last) {
    Problem piece = problem;
    piece.dims[1] = last - first;
    piece.values[1] = {p.x.begin() + first, p.x.begin() + last};
    piece.values[0].clear();
    for (Index i = 0; i < p.rows; ++i) {
      const auto row = p.blocks.begin() + i * count * kBytes;
      piece.values[0].insert(piece.values[0].end(), row + from * kBytes, row + to * kBytes);
    }
    return piece;
  };
  const Problem head = part(0, cut, 0, middle), tail = part(cut, count, middle, p.k);
  std::vector<double> parts = widened(trial.run(head).outputs[0]);
  add(parts, widened(trial.run(tail).outputs[0]));
  const Run whole = trial.run(problem);
  std::vector<double> bound = result_bounds(trial, problem);
  add(bound, result_bounds(trial, head));
  add(bound, result_bounds(trial, tail));
  return compare_within("y", problem.shape(2), widened(whole.outputs[0]), parts, bound);
}

Outcome q4_k_gemv::equals_gemv(Trial& trial) {
  Problem problem = trial.problem();
  const Parts p = parts_of(problem);
  Problem plain{&operation("gemv"), problem.dims, {}, std::vector<std::vector<float>>(3)};
  plain.values[0] = q4_k::values_of(p.blocks, p.rows, p.k);
  plain.values[1] = p.x;
  const Run run = trial.run(problem);
  std::vector<Bounded> want = trial.oracle(plain)[0];
  const std::vector<Bounded> own = trial.oracle(problem)[0];  // sums by sub-blocks have larger errors than gemv's
  for (std::size_t i = 0; i < want.size(); ++i) {
    want[i].error = std::max(want[i].error, own[i].error);
    want[i].may_overflow |= own[i].may_overflow;
  }
  return compare(Tier::worst_case, "y", problem.shape(2), run.outputs[0], want);
}

Outcome q4_k_gemv::batch_invariance(Trial& trial) { return independent_of_batch(trial, Sizes::drawn); }

Outcome q4_k_gemv::large(Trial& trial) {
  const Problem problem = trial.problem();
  return trial.against_oracle(trial.exact_tier(), problem, trial.run(problem));
}

audit::Subject q4_k_gemv::audited() {
  return {.sums = {{.says = "y[0] over k",
                    .terms = audit::Terms::values,
                    .dims = {4, 256},
                    .count = 256,
                    .left = {1},
                    .result = {2},
                    .background = [](Problem& p) { q4_k::make_ones(p.values[0], p.dims[0], p.dims[1]); }}}};
}

}  // namespace assay::falsify
