// Properties of the gradients of a linear layer with an adapter (obligations of contracts/lora_linear_backward.yaml).
#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/lora.hpp"
#include "falsify/properties/shared/products.hpp"
#include "lora_linear_backward_obligations.hpp"

namespace assay::falsify {
namespace lora_linear_backward {
namespace {

struct Parts {
  Matrix x, weight, a, b, t, dy;
  explicit Parts(const Problem& p) : x(p, 0), weight(p, 1), a(p, 2), b(p, 3), t(p, 4), dy(p, 5) {}
};

constexpr int kDx = 6, kDa = 7, kDb = 8;  // tensors; outputs 0, 1, 2
constexpr std::string_view kNames[] = {"dx", "da", "db"};

Problem problem_of(const Trial& trial, const Parts& p, double alpha) {
  return {&trial.op(),
          {p.x.rows, p.x.columns, p.weight.rows, p.a.rows},
          {alpha},
          {p.x.values, p.weight.values, p.a.values, p.b.values, p.t.values, p.dy.values, {}, {}, {}},
          trial.kernel().storage};
}

/// Makes integers whose sums are exact; one of the six tensors uses all bits. Columns of B, or rows of dy if B is wide,
/// select one element, so that dy · B has no more bits than the selected elements.
Problem exact_problem(Trial& trial, Problem problem, int least_scale) {
  Random random = trial.random("exact");
  const Index s = problem.dims[0], out = problem.dims[2], r = problem.dims[3];
  whole_scale(problem, r, least_scale, random);
  const std::size_t wide = random.below(6);
  for (std::size_t t = 0; t < 6; ++t)
    if (t == wide)
      fill_wide(problem.values[t], bits_for(trial, 2 * std::max(s, out + r), problem.dtype(static_cast<int>(t))),
                random);
    else if (t == 5 && wide == 3) problem.values[t] = one_in_each_row(s, out, random).values;
    else if (t == 3) problem.values[t] = transposed(one_in_each_row(r, out, random)).values;
    else fill_signs(problem.values[t], random);
  return problem;
}

/// Makes elements of dx integers which 16-bit formats hold: at most 7 products of dy · W are not zero, and 3 of g · A,
/// whose g = alpha / r dy · B takes elements of dy at most twice. x and t are signs.
Problem storable_problem(Trial& trial, Problem problem) {
  Random random = trial.random("storable");
  const Index s = problem.dims[0], in = problem.dims[1], out = problem.dims[2], r = problem.dims[3];
  const int limit = whole_limit(problem.storage) / 16;
  Matrix dy = few_in_each_row(s, out, 7, random), weight(out, in), a = few_in_each_row(in, r, 3, random);
  fill_below(weight, limit, false, random);
  if (random.chance(0.5)) {
    dy = Matrix(s, out), weight = transposed(few_in_each_row(in, out, 7, random));
    fill_below(dy, limit, false, random);
  } else {
    fill_below(a, limit, true, random);
  }
  problem.values[1] = weight.values, problem.values[2] = transposed(a).values, problem.values[5] = dy.values;
  problem.values[3] = transposed(one_in_each_row(r, out, random)).values;
  for (const std::size_t t : {0U, 4U}) fill_signs(problem.values[t], random);
  return problem;
}

}  // namespace
}  // namespace lora_linear_backward

Outcome lora_linear_backward::exact_at_whole_scales(Trial& trial) {
  if (!trial.the_case().values.empty())
    return trial.against_oracle(Tier::worst_case, trial.problem(), trial.run(trial.problem()));
  const Problem problem = exact_problem(trial, trial.problem(), -1);
  return trial.against_oracle(trial.exact_tier(), problem, trial.run(problem));
}

Outcome lora_linear_backward::large(Trial& trial) {
  if (!drawn_exact(trial))
    return Outcome::not_applicable("the inputs are not drawn as integers whose sums of products are exact");
  const Index pairs[][2] = {{0, 1}, {1, 3}, {2, 3}};  // dx, dA, dB
  const auto [first, second] = pairs[trial.random("large").below(3)];
  const Problem drawn = exact_problem(trial, trial.problem(two_large(trial, first, second)), 0),
                problem = drawn.storage == DType::f32 ? drawn : storable_problem(trial, drawn);
  const Run run = trial.run(problem);
  const Parts p(problem);
  const float scale = static_cast<float>(problem.params[0] / static_cast<double>(p.a.rows));
  Matrix g(p.dy.rows, p.b.columns);  // scale dy · B, exact
  for (Index i = 0; i < g.rows; ++i)
    for (Index o = 0; o < p.b.rows; ++o)
      for (Index q = 0; q < g.columns; ++q) g(i, q) += scale * p.dy(i, o) * p.b(o, q);
  const Matrix left = beside(p.dy, g), right = stacked(p.weight, p.a), dy = scaled(p.dy, scale);
  Outcome outcome = exact_product("dx", 2, left.view(), right.view(), {run.outputs[0].data(), problem.shape(kDx)});
  if (!outcome.finding)
    outcome &= exact_product("da", 2, g.view().transposed(), p.x.view(), {run.outputs[1].data(), problem.shape(kDa)});
  if (!outcome.finding)
    outcome &= exact_product("db", 2, dy.view().transposed(), p.t.view(), {run.outputs[2].data(), problem.shape(kDb)});
  return outcome;
}

Outcome lora_linear_backward::scaling(Trial& trial) {
  const Problem plain = trial.problem();
  Problem scaled = plain;
  const int exponent = static_cast<int>(trial.random("scaling").between(-6, 6));
  for (float& v : scaled.values[5]) v = std::ldexp(v, exponent);
  return trial.scales(plain, scaled, {exponent, exponent, exponent});
}

Outcome lora_linear_backward::row_slices(Trial& trial) {
  if (!drawn_exact(trial)) return rows_alone(trial, trial.problem(), false);
  return rows_alone(trial, exact_problem(trial, trial.problem(), -1), true);
}

Outcome lora_linear_backward::zero_b(Trial& trial) {
  const Problem problem = trial.problem();
  Problem no_b = problem;
  std::ranges::fill(no_b.values[3], 0.0f);
  const Parts p(no_b);
  const Run run = trial.run(no_b), full = trial.run(problem);
  const Problem product{&operation("matmul"),
                        {p.dy.rows, p.dy.columns, p.weight.columns},
                        {},
                        {p.dy.values, p.weight.values, {}},
                        problem.storage};
  Outcome outcome = compare(Tier::worst_case, "dx", problem.shape(kDx), run.outputs[0], trial.oracle(product)[0]);
  outcome &= within("da", problem.shape(kDa), run.outputs[1], std::vector<float>(run.outputs[1].size()),
                    std::vector<double>(run.outputs[1].size()));
  return outcome &= trial.related(
             compare_bits("db", problem.shape(kDb), run.outputs[2], full.outputs[2], "with B = 0, against any B"),
             Related::always, {{problem, full}, {no_b, run}});
}

Outcome lora_linear_backward::rows_add(Trial& trial) {
  const Problem whole = trial.problem();
  const Parts p(whole);
  const Index cut = trial.random("split").between(0, p.x.rows);
  std::vector<std::vector<double>> sums(3), bounds(3);
  const Run all = trial.run(whole);
  const auto of_all = trial.oracle(whole);
  for (std::size_t o = 1; o < 3; ++o) sums[o].resize(all.outputs[o].size()), bounds[o] = bounds_of(of_all[o]);
  for (const auto& [from, to] : {std::pair{Index{0}, cut}, std::pair{cut, p.x.rows}}) {
    Parts part = p;
    for (Matrix* m : {&part.x, &part.t, &part.dy}) *m = rows_of(*m, from, to);
    const Problem problem = problem_of(trial, part, whole.params[0]);
    const Run run = trial.run(problem);
    const auto oracle = trial.oracle(problem);
    for (std::size_t o = 1; o < 3; ++o) add(sums[o], widened(run.outputs[o])), add(bounds[o], bounds_of(oracle[o]));
  }
  Outcome outcome;
  for (std::size_t o = 1; o < 3; ++o)
    outcome &=
        compare_within(kNames[o], whole.shape(kDx + static_cast<int>(o)), widened(all.outputs[o]), sums[o], bounds[o]);
  return outcome;
}

Outcome lora_linear_backward::rank_doubled(Trial& trial) {
  const Problem once = trial.problem();
  Parts p(once);
  p.a = stacked(p.a, p.a);
  p.b = beside(p.b, p.b);
  p.t = beside(p.t, p.t);
  const Problem twice = problem_of(trial, p, once.params[0]);
  const Run one = trial.run(once), two = trial.run(twice);
  auto want = trial.oracle(once), own = trial.oracle(twice);
  // The gradients of one adapter, halved and concatenated with themselves; halving is exact except for subnormals,
  // which the bounds of either side cover.
  const auto doubled = [&](std::size_t o, auto values) {
    for (auto& v : values) v /= 2;
    std::decay_t<decltype(values)> both = values;
    if (o == 1) both.insert(both.end(), values.begin(), values.end());  // dA: rows below rows
    if (o != 2) return both;
    both.clear();  // dB: columns next to columns
    const Index r = once.dims[3];
    for (Index i = 0; i < once.dims[2]; ++i)
      for (int half = 0; half < 2; ++half)
        both.insert(both.end(), values.begin() + i * r, values.begin() + (i + 1) * r);
    return both;
  };
  Outcome outcome;
  for (std::size_t o = 0; o < 3; ++o) {
    std::vector<double> got = widened(two.outputs[o]), expected = widened(one.outputs[o]), bound = bounds_of(want[o]);
    if (o > 0) expected = doubled(o, expected), bound = doubled(o, bound);
    add(bound, bounds_of(own[o]));
    if (o == 0)  // f16 overflows at 65520, and the two sides are rounded apart
      for (std::size_t i = 0; i < bound.size(); ++i)
        if (std::isinf(want[o][i].value) || std::isinf(own[o][i].value)) bound[i] = INFINITY;
    outcome &= compare_within(kNames[o], twice.shape(kDx + static_cast<int>(o)), got, expected, bound);
  }
  return outcome;
}

namespace lora_linear_backward {
namespace {

/// Makes the first column of dy b equal dy[i,0], and alpha / r = 1.
void scale_one(Problem& p) {
  p.values[3][0] = 1;
  p.params[0] = static_cast<double>(p.dims[3]);
}

}  // namespace
}  // namespace lora_linear_backward

audit::Subject lora_linear_backward::audited() {
  return {.sums = {{.says = "dx[0,0] over out",
                    .terms = audit::Terms::products,
                    .dims = {16, 16, 64, 8},
                    .count = 64,
                    .left = {5},
                    .right = {1, 0, 16},
                    .result = {6}},
                   {.says = "da[0,0] over s",
                    .terms = audit::Terms::products,
                    .dims = {64, 16, 16, 8},
                    .count = 64,
                    .left = {5, 0, 16},
                    .right = {0, 0, 16},
                    .result = {7},
                    .background = &scale_one},
                   {.says = "db[0,0] over s",
                    .terms = audit::Terms::products,
                    .dims = {64, 16, 16, 8},
                    .count = 64,
                    .left = {5, 0, 16},
                    .right = {4, 0, 8},
                    .result = {8},
                    .background = &scale_one}}};
}

}  // namespace assay::falsify
