// Properties of y = x · Wᵀ + bias + alpha / r (x · Aᵀ) · Bᵀ (obligations of contracts/lora_linear.yaml).
#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/lora.hpp"
#include "falsify/properties/shared/products.hpp"
#include "lora_linear_obligations.hpp"

namespace assay::falsify {
namespace lora_linear {
namespace {

struct Parts {
  Matrix x, weight, bias, a, b;
  explicit Parts(const Problem& p) : x(p, 0), weight(p, 1), bias(p, 2), a(p, 3), b(p, 4) {}
};

Problem problem_of(const Trial& trial, const Parts& p, const Matrix& a, const Matrix& b, double alpha) {
  return {&trial.op(),
          {p.x.rows, p.x.columns, p.weight.rows, a.rows, p.bias.rows},
          {alpha},
          {p.x.values, p.weight.values, p.bias.values, a.values, b.values, {}, {}},
          trial.kernel().storage};
}

/// A call of linear for its oracle, whose y is rounded to the kernel's format; x and weight need not be.
Problem linear_problem(const Trial& trial, const Matrix& x, const Matrix& weight, const Matrix& bias) {
  return {&operation("linear"),
          {x.rows, x.columns, weight.rows, bias.rows},
          {},
          {x.values, weight.values, bias.values, {}},
          trial.kernel().storage};
}

/// Makes integers whose sums are exact; one of the five tensors uses all bits. Rows of A, or of x if A is wide, select
/// one element, so that t has no more bits than the selected elements.
Problem exact_problem(Trial& trial, Problem problem, int least_scale) {
  Random random = trial.random("exact");
  const Index s = problem.dims[0], in = problem.dims[1], r = problem.dims[3];
  whole_scale(problem, r, least_scale, random);
  const std::size_t wide = random.below(5);
  for (std::size_t t = 0; t < 5; ++t)
    if (t == wide)
      fill_wide(problem.values[t], bits_for(trial, 2 * (in + r + 1), problem.dtype(static_cast<int>(t))), random);
    else if (t == 0 && wide == 3) problem.values[t] = one_in_each_row(s, in, random).values;
    else if (t == 3) problem.values[t] = one_in_each_row(r, in, random).values;
    else fill_signs(problem.values[t], random);
  return problem;
}

/// Makes sums that are integers which 16-bit formats hold, for checks of stored sums: at most 7 products of x · Wᵀ are not
/// zero, and 3 of t · Bᵀ, whose scale is at most 2. With the bias that is 14 times a sixteenth of the limit.
Problem storable_problem(Trial& trial, Problem problem) {
  Random random = trial.random("storable");
  const Index s = problem.dims[0], in = problem.dims[1], out = problem.dims[2], r = problem.dims[3];
  const int limit = whole_limit(problem.storage) / 16;
  whole_scale(problem, r, 0, random);
  Matrix x = few_in_each_row(s, in, 7, random), weight(out, in), bias(problem.dims[4], out),
         b = few_in_each_row(out, r, 3, random);
  fill_below(weight, limit, false, random);
  if (random.chance(0.5)) {  // t takes elements of x as they are
    x = Matrix(s, in), weight = few_in_each_row(out, in, 7, random);
    fill_below(x, limit, false, random);
  } else {
    fill_below(b, limit, true, random);
  }
  fill_below(bias, limit, false, random);
  problem.values[0] = x.values, problem.values[1] = weight.values, problem.values[2] = bias.values;
  problem.values[3] = one_in_each_row(r, in, random).values, problem.values[4] = b.values;
  return problem;
}

Matrix ones(Index rows, Index columns) {
  Matrix m(rows, columns);
  std::ranges::fill(m.values, 1.0f);
  return m;
}

}  // namespace
}  // namespace lora_linear

Outcome lora_linear::exact_at_whole_scales(Trial& trial) {
  if (!trial.the_case().values.empty())
    return trial.against_oracle(Tier::worst_case, trial.problem(), trial.run(trial.problem()));
  const Problem problem = exact_problem(trial, trial.problem(), -1);
  return trial.against_oracle(trial.exact_tier(), problem, trial.run(problem));
}

Outcome lora_linear::large(Trial& trial) {
  if (!drawn_exact(trial))
    return Outcome::not_applicable("the inputs are not drawn as integers whose sums of products are exact");
  const Index pairs[][2] = {{0, 2}, {0, 3}, {2, 3}};  // y, t, and long sums over the rank
  const auto [first, second] = pairs[trial.random("large").below(3)];
  const Problem drawn = trial.problem(two_large(trial, first, second)),
                problem = drawn.storage == DType::f32 ? exact_problem(trial, drawn, 0) : storable_problem(trial, drawn);
  const Run run = trial.run(problem);
  const Parts p(problem);
  const float scale = static_cast<float>(problem.params[0] / static_cast<double>(p.a.rows));
  const Matrix t(p.x.rows, p.a.rows, run.outputs[1]);
  Outcome outcome = exact_product("t", 2, p.x.view(), p.a.view().transposed(), t.view());
  if (outcome.finding) return outcome;
  const Matrix left = beside(beside(p.x, ones(p.x.rows, p.bias.rows)), t),
               right = beside(beside(p.weight, transposed(p.bias)), scaled(p.b, scale));
  return outcome &=
         exact_product("y", 2, left.view(), right.view().transposed(), {run.outputs[0].data(), problem.shape(5)});
}

Outcome lora_linear::scaling(Trial& trial) {
  const Problem plain = trial.problem();
  Problem scaled = plain;
  Random random = trial.random("scaling");
  const int of_x = static_cast<int>(random.between(-4, 4)), of_w = static_cast<int>(random.between(-4, 4));
  const int exponents[] = {of_x, of_w, of_x + of_w, 0, of_w};
  for (std::size_t t = 0; t < 5; ++t)
    for (float& v : scaled.values[t]) v = std::ldexp(v, exponents[t]);
  return trial.scales(plain, scaled, {of_x + of_w, of_x});
}

Outcome lora_linear::row_slices(Trial& trial) {
  if (!drawn_exact(trial)) return rows_alone(trial, trial.problem(), false);
  return rows_alone(trial, exact_problem(trial, trial.problem(), -1), true);
}

Outcome lora_linear::zero_b(Trial& trial) {
  const Problem problem = trial.problem();
  const Parts p(problem);
  Problem no_b = problem, no_a = problem;
  std::ranges::fill(no_b.values[4], 0.0f);
  std::ranges::fill(no_a.values[3], 0.0f);
  const Run without_b = trial.run(no_b), without_a = trial.run(no_a);
  Outcome outcome = trial.related(within("y", problem.shape(5), without_b.outputs[0], without_a.outputs[0],
                                         std::vector<double>(without_b.outputs[0].size())),
                                  Related::always, {{no_b, without_b}, {no_a, without_a}});
  return outcome &= compare(Tier::worst_case, "y", problem.shape(5), without_b.outputs[0],
                            trial.oracle(linear_problem(trial, p.x, p.weight, p.bias))[0]);
}

Outcome lora_linear::merged(Trial& trial) {
  const Problem problem = trial.problem();
  const Parts p(problem);
  const Run run = trial.run(problem);
  const Problem merge{&operation("lora_merge"),
                      {p.weight.rows, p.weight.columns, p.a.rows},
                      problem.params,
                      {p.weight.values, p.a.values, p.b.values, {}}};
  const std::vector<Bounded> exact = trial.oracle(merge)[0];
  Matrix merged(p.weight.rows, p.weight.columns);
  for (std::size_t i = 0; i < exact.size(); ++i) merged.values[i] = static_cast<float>(exact[i].value);
  const std::vector<Bounded> want = trial.oracle(linear_problem(trial, p.x, merged, p.bias))[0];
  std::vector<double> values, bound = addend_bounds(trial, problem);
  for (Index i = 0; i < p.x.rows; ++i)
    for (Index o = 0; o < merged.rows; ++o) {
      const auto at = static_cast<std::size_t>(i * merged.rows + o);
      values.push_back(want[at].value);
      bound[at] += want[at].may_overflow || std::isinf(want[at].value) ? INFINITY : want[at].error;
      // The merged weight is rounded to float.
      for (Index k = 0; k < merged.columns; ++k)
        bound[at] += (1 + 0x1p-20) * std::fabs(p.x(i, k)) *
                     std::fabs(merged(o, k) - exact[static_cast<std::size_t>(o * merged.columns + k)].value);
    }
  return compare_within("y", problem.shape(5), widened(run.outputs[0]), values, bound);
}

Outcome lora_linear::linear_of_saved(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("scale");
  const float scale = whole_scale(problem, problem.dims[3], -1, random);
  const Parts p(problem);
  const Run run = trial.run(problem);
  const Matrix t(p.x.rows, p.a.rows, run.outputs[1]);
  return compare(Tier::statistical, "y", problem.shape(5), run.outputs[0],
                 trial.oracle(linear_problem(trial, beside(p.x, t), beside(p.weight, scaled(p.b, scale)), p.bias))[0]);
}

Outcome lora_linear::rank_doubled(Trial& trial) {
  const Problem once = trial.problem();
  const Parts p(once);
  const Problem twice = problem_of(trial, p, stacked(p.a, p.a), beside(p.b, p.b), once.params[0]);
  const Run one = trial.run(once), two = trial.run(twice);
  std::vector<double> bound = addend_bounds(trial, once);
  add(bound, addend_bounds(trial, twice));
  return within("y", once.shape(5), two.outputs[0], one.outputs[0], bound);
}

Outcome lora_linear::ranks_add(Trial& trial) {
  Problem both = trial.problem();
  Random random = trial.random("split");
  const Index r = both.dims[3];
  const float scale = whole_scale(both, r, -1, random);
  if (r < 2) return trial.against_oracle(Tier::worst_case, both, trial.run(both));
  const Parts p(both);
  const Index cut = random.between(1, r - 1);
  const Problem head = problem_of(trial, p, rows_of(p.a, 0, cut), columns_of(p.b, 0, cut),
                                  static_cast<double>(cut) * scale),
                tail = problem_of(trial, p, rows_of(p.a, cut, r), columns_of(p.b, cut, r),
                                  static_cast<double>(r - cut) * scale),
                none = problem_of(trial, p, p.a, scaled(p.b, 0.0f), both.params[0]);
  const auto sum_of = [&](const Problem& one, const Problem& other) {
    std::vector<double> sum = widened(trial.run(one).outputs[0]);
    add(sum, widened(trial.run(other).outputs[0]));
    return sum;
  };
  const std::vector<double> whole = sum_of(both, none), parts = sum_of(head, tail);
  std::vector<double> bound(whole.size());
  for (const Problem& part : {both, none, head, tail}) add(bound, addend_bounds(trial, part));
  return compare_within("y", both.shape(5), whole, parts, bound);
}

namespace lora_linear {
namespace {

/// Makes t[0,q] = a[q,0] and alpha / r = 1.
void scale_one(Problem& p) {
  p.values[0][0] = 1;
  p.params[0] = static_cast<double>(p.dims[3]);
}

}  // namespace
}  // namespace lora_linear

audit::Subject lora_linear::audited() {
  return {.sums = {{.says = "y[0,0] over in",
                    .terms = audit::Terms::products,
                    .dims = {16, 64, 16, 8, 0},
                    .count = 64,
                    .left = {0},
                    .right = {1},
                    .result = {5}},
                   {.says = "t[0,0] over in",
                    .terms = audit::Terms::products,
                    .dims = {16, 64, 16, 8, 0},
                    .count = 64,
                    .left = {0},
                    .right = {3},
                    .result = {6}},
                   {.says = "y[0,0] over r",
                    .terms = audit::Terms::products,
                    .dims = {16, 16, 16, 32, 0},
                    .count = 32,
                    .left = {3, 0, 16},
                    .right = {4},
                    .result = {5},
                    .background = &scale_one}}};
}

}  // namespace assay::falsify
