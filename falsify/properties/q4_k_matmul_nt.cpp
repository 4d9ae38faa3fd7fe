// Properties of Y = X · Wᵀ for W in Q4_K super-blocks (obligations of contracts/q4_k_matmul_nt.yaml).
#include "q4_k_matmul_nt_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/elementwise.hpp"
#include "falsify/properties/shared/matrices.hpp"
#include "falsify/properties/shared/products.hpp"
#include "falsify/properties/shared/q4_k.hpp"

namespace assay::falsify {
namespace q4_k_matmul_nt {
namespace {

using q4_k::kBytes;
using q4_k::kValues;

struct Dims {
  Index m, k, n;
};
Dims dims_of(const Problem& problem) { return {problem.dims[0], problem.dims[1], problem.dims[2]}; }

Dims with_elements(const Trial& trial) {
  const std::vector<Index>& dims = trial.the_case().dims;
  return {std::max<Index>(dims[0], 1), std::max<Index>(dims[1], 1), std::max<Index>(dims[2], 1)};
}

/// Returns elements [from, to) of each row of a matrix whose rows have `width` elements.
std::vector<float> columns_of(const std::vector<float>& values, Index width, Index from, Index to) {
  std::vector<float> cut;
  for (auto row = values.begin(); row != values.end(); row += width) cut.insert(cut.end(), row + from, row + to);
  return cut;
}

Problem with_rows(const Problem& problem, std::vector<float> x, Index m) {
  Problem other = problem;
  other.dims[0] = m;
  other.values[0] = std::move(x);
  return other;
}

}  // namespace
}  // namespace q4_k_matmul_nt

void q4_k_matmul_nt::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  const auto [m, k, n] = dims_of(problem);
  q4_k::make_product(problem.values[1], n, problem.values[0], m, k, strategy, random);
}

Outcome q4_k_matmul_nt::columns(Trial& trial) {
  const Dims given = with_elements(trial);
  Random random = trial.random("rows of the identity");
  const Index rows = random.chance(0.3) ? 1 : random.between(2, 48);
  Problem problem = trial.problem({rows, given.k, given.n});
  std::vector<float>& x = problem.values[0];
  std::ranges::fill(x, 0.0F);
  std::vector<Bounded> want;
  for (Index i = 0; i < rows; ++i) {
    const Index column = random.between(0, given.k - 1);
    x[static_cast<std::size_t>(i * given.k + column)] = 1;
    for (Index j = 0; j < given.n; ++j)
      want.emplace_back(q4_k::block_of(problem.values[1], given.k, j, column / kValues).decoded(column % kValues));
  }
  const Run run = trial.run(problem);
  if (!trial.holds_floats()) return trial.against_oracle(Tier::worst_case, problem, run);
  return compare(Tier::exact, "y", problem.shape(2), run.outputs[0], want);
}

Outcome q4_k_matmul_nt::padding(Trial& trial) {
  Random random = trial.random("padding");
  Dims given = with_elements(trial);
  if (given.k % kValues == 0) given.k += random.between(1, kValues - 1) - kValues;
  const Problem plain = trial.problem({given.m, given.k, given.n});
  if (!q4_k::has_padding(plain)) return q4_k::no_padding();
  Problem problem = plain;
  q4_k::scramble_padding(problem.values[1], problem.dims[2], problem.dims[1], random);
  const Run before = trial.run(plain), after = trial.run(problem);
  Outcome outcome = trial.against_oracle(Tier::worst_case, problem, after);
  return outcome &=
         trial.related(compare_bits("y", problem.shape(2), after.outputs[0], before.outputs[0], "another padding"),
                       Related::always, {{plain, before}, {problem, after}});
}

Outcome q4_k_matmul_nt::scaling(Trial& trial) { return scales_with(trial, {0}); }

Outcome q4_k_matmul_nt::linearity(Trial& trial) {
  Problem first = trial.problem();
  Problem second = first, sum = first;
  Random random = trial.random("linearity");
  // Multiples of 2^-10 below 2^12: any two of them add exactly.
  const auto on_grid = [](double x) {
    return static_cast<float>(std::ldexp(std::round(std::ldexp(std::fmod(x, 4096.0), 10)), -10));
  };
  for (std::size_t i = 0; i < first.values[0].size(); ++i) {
    first.values[0][i] = on_grid(first.values[0][i]);
    second.values[0][i] = on_grid(random.gaussian());
    sum.values[0][i] = first.values[0][i] + second.values[0][i];
  }
  std::vector<double> parts = widened(trial.run(first).outputs[0]), bound = result_bounds(trial, first);
  add(parts, widened(trial.run(second).outputs[0]));
  const std::vector<double> whole = widened(trial.run(sum).outputs[0]);
  add(bound, result_bounds(trial, second));
  add(bound, result_bounds(trial, sum));
  return compare_within("y", sum.shape(2), whole, parts, bound);
}

Outcome q4_k_matmul_nt::single_row(Trial& trial) {
  const Problem problem = trial.problem();
  const auto [m, k, n] = dims_of(problem);
  const Run whole = trial.run(problem);
  if (m == 0) return trial.against_oracle(Tier::worst_case, problem, whole);
  Random random = trial.random("row");
  const Index i = random.between(0, m - 1);
  const Problem one =
      with_rows(problem, {problem.values[0].begin() + i * k, problem.values[0].begin() + (i + 1) * k}, 1);
  const Run run = trial.run(one);
  std::vector<double> bound = result_bounds(trial, one);
  for (double& b : bound) b = drawn_exact(trial) ? 0 : 2 * b;
  const std::vector<float> own(whole.outputs[0].begin() + i * n, whole.outputs[0].begin() + (i + 1) * n);
  return compare_within("y", one.shape(2), widened(run.outputs[0]), widened(own), bound);
}

Outcome q4_k_matmul_nt::weight_rows(Trial& trial) {
  const Problem problem = trial.problem();
  const auto [m, k, n] = dims_of(problem);
  Random random = trial.random("rows of w");
  const Run whole = trial.run(problem);
  const Index from = random.between(0, n), to = random.between(from, n), bytes = q4_k::row_bytes(k);
  Problem part = problem;
  part.dims[2] = to - from;
  part.values[1] = {problem.values[1].begin() + from * bytes, problem.values[1].begin() + to * bytes};
  const Run run = trial.run(part);
  const std::vector<float> want = n == 0 ? std::vector<float>{} : columns_of(whole.outputs[0], n, from, to);
  Outcome outcome = trial.against_oracle(Tier::worst_case, problem, whole);
  return outcome &= trial.related(compare_bits("y", part.shape(2), run.outputs[0], want, "some rows of W, against all"),
                                  Related::by_batch, {{problem, whole}, {part, run}});
}

Outcome q4_k_matmul_nt::equals_dense(Trial& trial) {
  const Problem problem = trial.problem();
  const auto [m, k, n] = dims_of(problem);
  const Problem plain{
      &operation("matmul_nt"), problem.dims, {}, {problem.values[0], q4_k::values_of(problem.values[1], n, k), {}}};
  const Run run = trial.run(problem);
  std::vector<Bounded> want = trial.oracle(plain)[0];
  const std::vector<Bounded> own = trial.oracle(problem)[0];  // sums by sub-blocks have larger errors than matmul_nt's
  for (std::size_t i = 0; i < want.size(); ++i) {
    want[i].error = std::max(want[i].error, own[i].error);
    want[i].may_overflow |= own[i].may_overflow;
  }
  return compare(Tier::worst_case, "y", problem.shape(2), run.outputs[0], want);
}

Outcome q4_k_matmul_nt::large(Trial& trial) {
  const Problem problem = trial.problem();
  if (!drawn_exact(trial))
    return Outcome::not_applicable("the inputs are not integers whose sums of products are exact");
  const auto [m, k, n] = dims_of(problem);
  const std::vector<float> weights = q4_k::values_of(problem.values[1], n, k);
  if (!std::ranges::all_of(weights, [](float w) { return w == std::floor(w); }))
    return Outcome::not_applicable("the weights are no integers");
  const Run run = trial.run(problem);
  return exact_product("y", 2, {problem.values[0].data(), {m, k}},
                       View<const float>(weights.data(), {n, k}).transposed(), {run.outputs[0].data(), {m, n}});
}

Outcome q4_k_matmul_nt::block_additivity(Trial& trial) {
  const Problem problem = trial.problem();
  const auto [m, k, n] = dims_of(problem);
  Random random = trial.random("split");
  const Index count = q4_k::blocks_of(k), cut = random.between(0, count), middle = std::min(cut * kValues, k);
  const auto part = [&, k = k](Index from, Index to, Index first, Index last) {
    Problem piece = problem;
    piece.dims[1] = last - first;
    if (k > 0) {
      piece.values[0] = columns_of(problem.values[0], k, first, last);
      piece.values[1] = columns_of(problem.values[1], count * kBytes, from * kBytes, to * kBytes);
    }
    return piece;
  };
  const Problem head = part(0, cut, 0, middle), tail = part(cut, count, middle, k);
  std::vector<double> parts = widened(trial.run(head).outputs[0]);
  add(parts, widened(trial.run(tail).outputs[0]));
  const Run whole = trial.run(problem);
  std::vector<double> bound = result_bounds(trial, problem);
  add(bound, result_bounds(trial, head));
  add(bound, result_bounds(trial, tail));
  return compare_within("y", problem.shape(2), widened(whole.outputs[0]), parts, bound);
}

Outcome q4_k_matmul_nt::long_sums(Trial& trial) {
  Random random = trial.random("long sums");
  const Index rows = random.between(1, 20), columns = random.between(1, 5);
  const Index length = random.chance(0.5) ? random.between(8192, 20000) : 16384 + random.between(-1, 257);
  const Problem problem = trial.problem({rows, length, columns});
  return trial.against_oracle(Tier::worst_case, problem, trial.run(problem));
}

Outcome q4_k_matmul_nt::mixed_rows(Trial& trial) {
  Dims given = with_elements(trial);
  Random random = trial.random("rows");
  given.m = std::max<Index>(given.m, random.between(2, 20));
  Problem problem = trial.problem({given.m, given.k, given.n});
  const Index row = random.between(0, given.m - 1);
  for (Index p = 0; p < given.k; ++p)
    problem.values[0][static_cast<std::size_t>(row * given.k + p)] =
        static_cast<float>(random.either_sign(std::ldexp(1, static_cast<int>(random.between(-149, 120)))));
  return trial.against_oracle(Tier::worst_case, problem, trial.run(problem));
}

audit::Subject q4_k_matmul_nt::audited() {
  return {.sums = {{.says = "y[0,0] over k",
                    .terms = audit::Terms::values,
                    .dims = {16, 256, 16},
                    .count = 256,
                    .left = {0},
                    .result = {2},
                    .background = [](Problem& p) { q4_k::make_ones(p.values[1], p.dims[2], p.dims[1]); }}}};
}

}  // namespace assay::falsify
