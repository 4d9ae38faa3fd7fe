#include "falsify/properties/shared/nf4_products.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "contract/certificates.hpp"
#include "core/any_formula.hpp"
#include "falsify/properties/shared/matrices.hpp"
#include "falsify/properties/shared/nf4.hpp"
#include "falsify/properties/shared/products.hpp"

namespace assay::falsify {
namespace {

struct Extents {
  Index m, n, k;
};
Extents extents(const Problem& p, Nf4Product form) {
  return form == Nf4Product::nt ? Extents{p.dims[0], p.dims[2], p.dims[1]} : Extents{p.dims[0], p.dims[1], p.dims[2]};
}
std::vector<Index> dims(const Extents& e, Nf4Product form) {
  return form == Nf4Product::nt ? std::vector{e.m, e.k, e.n} : std::vector{e.m, e.n, e.k};
}
Index terms(const Extents& e, Nf4Product form) { return form == Nf4Product::nt ? e.k : e.n; }

std::string_view output_name(const Trial& trial) { return trial.op().tensors[3].name; }

/// Returns the problem with the same codes and scales and another left factor of `rows` rows.
Problem with_left(const Problem& problem, Nf4Product form, std::vector<float> left, Index rows) {
  Problem other = problem;
  Extents e = extents(problem, form);
  e.m = rows;
  other.dims = dims(e, form);
  other.values[0] = std::move(left);
  return other;
}

std::span<const float> row(const std::vector<float>& values, Index width, Index i) {
  return std::span(values).subspan(static_cast<std::size_t>(i * width), static_cast<std::size_t>(width));
}

std::vector<float> decoded(const Problem& problem, Nf4Product form) {
  const Extents e = extents(problem, form);
  return weights_of(problem, 1, 2, e.n, e.k);
}

/// Returns the problem with rows [from, to) of W; for a plain product also the matching columns of the left factor.
Problem weight_rows(const Problem& whole, Nf4Product form, Index from, Index to) {
  Problem part = whole;
  Extents e = extents(whole, form);
  for (int t : {1, 2}) {
    const std::vector<float>& all = whole.values[static_cast<std::size_t>(t)];
    const Index width = whole.shape(t)[1];
    part.values[static_cast<std::size_t>(t)].assign(all.begin() + from * width, all.begin() + to * width);
  }
  if (form == Nf4Product::plain) {
    part.values[0].clear();
    for (Index i = 0; i < e.m; ++i) {
      const auto own =
          row(whole.values[0], e.n, i).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from));
      part.values[0].insert(part.values[0].end(), own.begin(), own.end());
    }
  }
  e.n = to - from;
  part.dims = dims(e, form);
  return part;
}

}  // namespace

void nf4_exact_codes(Problem& problem, Nf4Product form, Strategy strategy, Random& random) {
  make_codes(problem, 1, 2, 0, extents(problem, form).k, strategy, random);
}

Outcome nf4_decodes(Trial& trial, Nf4Product form) {
  const Problem problem = trial.problem();
  const Extents e = extents(problem, form);
  const Index count = terms(e, form), width = form == Nf4Product::nt ? e.n : e.k;
  Random random = trial.random("rows of the identity");
  const Index rows = count == 0 ? 0 : random.chance(0.3) ? 1 : std::min<Index>(count, random.between(2, 48));
  const std::vector<float> weights = decoded(problem, form);
  std::vector<float> left(static_cast<std::size_t>(rows * count));
  std::vector<Bounded> want;
  for (Index i = 0; i < rows; ++i) {
    const Index at = random.between(0, count - 1);
    left[static_cast<std::size_t>(i * count + at)] = 1;
    for (Index j = 0; j < width; ++j)
      want.push_back(
          Bounded::input(weights[static_cast<std::size_t>(form == Nf4Product::nt ? j * e.k + at : at * e.k + j)]));
  }
  const Problem identity = with_left(problem, form, std::move(left), rows);
  const Run run = trial.run(identity);
  if (!trial.holds_floats()) return trial.against_oracle(Tier::worst_case, identity, run);
  return compare(Tier::exact, output_name(trial), identity.shape(3), run.outputs[0], want);
}

Outcome nf4_scaling(Trial& trial, Nf4Product /*form*/) {
  // Powers of two can move directed scales across the largest one that is treated as 0.
  const bool directed = trial.the_case().strategy == Strategy::directed;
  const Problem problem = directed ? trial.problem(Strategy::gaussian) : trial.problem();
  Random random = trial.random("scaling");
  const int s = static_cast<int>(random.between(-4, 4)), t = static_cast<int>(random.between(-4, 4));
  Problem scaled = problem;
  for (float& x : scaled.values[0]) x = std::ldexp(x, s);
  for (float& x : scaled.values[2]) x = std::ldexp(x, t);
  return trial.scales(problem, scaled, {s + t});
}

Outcome nf4_linearity(Trial& trial, Nf4Product form) {
  Problem first = trial.problem();
  Random random = trial.random("linearity");
  // Multiples of 2^-10 below 2^12: any two of them add exactly.
  const auto on_grid = [](double x) {
    return static_cast<float>(std::ldexp(std::round(std::ldexp(std::fmod(x, 4096.0), 10)), -10));
  };
  std::vector<float> other, both;
  for (float& x : first.values[0]) {
    x = on_grid(x);
    other.push_back(on_grid(random.gaussian()));
    both.push_back(x + other.back());
  }
  const Index m = first.dims[0];
  const Problem second = with_left(first, form, std::move(other), m), sum = with_left(first, form, std::move(both), m);
  std::vector<double> parts = widened(trial.run(first).outputs[0]);
  add(parts, widened(trial.run(second).outputs[0]));
  const std::vector<double> whole = widened(trial.run(sum).outputs[0]);
  std::vector<double> bound = result_bounds(trial, first);
  add(bound, result_bounds(trial, second));
  add(bound, result_bounds(trial, sum));
  return compare_within(output_name(trial), sum.shape(3), whole, parts, bound);
}

Outcome nf4_single_row(Trial& trial, Nf4Product form) {
  const Problem problem = trial.problem();
  const Extents e = extents(problem, form);
  const Run whole = trial.run(problem);
  if (e.m == 0) return trial.against_oracle(Tier::worst_case, problem, whole);
  Random random = trial.random("row");
  const Index i = random.between(0, e.m - 1);
  const auto left = row(problem.values[0], problem.shape(0)[1], i);
  const Problem one = with_left(problem, form, {left.begin(), left.end()}, 1);
  const Run run = trial.run(one);
  std::vector<double> bound = result_bounds(trial, one);
  for (double& b : bound) b = drawn_exact(trial) ? 0 : 2 * b;
  const auto own = row(whole.outputs[0], problem.shape(3)[1], i);
  return compare_within(output_name(trial), one.shape(3), widened(run.outputs[0]), widened({own.begin(), own.end()}),
                        bound);
}

Outcome nf4_weight_rows(Trial& trial, Nf4Product form) {
  const Problem problem = trial.problem();
  const Extents e = extents(problem, form);
  Random random = trial.random("rows of w");
  const Run whole = trial.run(problem);
  if (form == Nf4Product::nt) {
    const Index from = random.between(0, e.n), to = random.between(from, e.n);
    const Problem part = weight_rows(problem, form, from, to);
    const Run run = trial.run(part);
    std::vector<float> want;
    for (Index i = 0; i < e.m; ++i) {
      const auto own =
          row(whole.outputs[0], e.n, i).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from));
      want.insert(want.end(), own.begin(), own.end());
    }
    Outcome outcome = trial.against_oracle(Tier::worst_case, problem, whole);
    return outcome &= trial.related(
               compare_bits(output_name(trial), part.shape(3), run.outputs[0], want, "some rows of W, against all"),
               Related::by_batch, {{problem, whole}, {part, run}});
  }
  const Index cut = random.between(0, e.n);
  const Problem head = weight_rows(problem, form, 0, cut), tail = weight_rows(problem, form, cut, e.n);
  std::vector<double> parts = widened(trial.run(head).outputs[0]);
  add(parts, widened(trial.run(tail).outputs[0]));
  std::vector<double> bound = result_bounds(trial, problem);
  add(bound, result_bounds(trial, head));
  add(bound, result_bounds(trial, tail));
  return compare_within(output_name(trial), problem.shape(3), widened(whole.outputs[0]), parts, bound);
}

Outcome nf4_equals_dense(Trial& trial, Nf4Product form) {
  const Problem problem = trial.problem();
  const Extents e = extents(problem, form);
  const Run run = trial.run(problem);
  const bool nt = form == Nf4Product::nt;
  const Problem dense{&operation(nt ? "matmul_nt" : "matmul"),
                      nt ? std::vector{e.m, e.k, e.n} : std::vector{e.m, e.n, e.k},
                      {},
                      {problem.values[0], decoded(problem, form), {}}};
  // Use the bounds of the dense product, and those of kernels that scale products or sums if both oracles agree.
  std::vector<Bounded> want = trial.oracle(dense)[0];
  const std::vector<Bounded> own = trial.oracle(problem)[0];
  for (std::size_t i = 0; i < want.size(); ++i) {
    const bool finite = std::isfinite(want[i].value);
    if (!finite || std::fabs(own[i].value - want[i].value) <= want[i].error) want[i] = any_formula(want[i], own[i]);
  }
  return compare(Tier::worst_case, output_name(trial), problem.shape(3), run.outputs[0], want);
}

Outcome nf4_long_sums(Trial& trial, Nf4Product form) {
  Random random = trial.random("long sums");
  const Index rows = random.between(1, 6), columns = random.between(1, 5);
  const Index length = random.chance(0.5) ? random.between(8192, 20000) : 16384 + random.between(-1, 65);
  const Extents e = form == Nf4Product::nt ? Extents{rows, columns, length} : Extents{rows, length, columns};
  const Problem problem = trial.problem(dims(e, form));
  return trial.against_oracle(Tier::worst_case, problem, trial.run(problem));
}

Outcome nf4_infinite_scale(Trial& trial, Nf4Product form) {
  const Problem whole = trial.problem(Strategy::gaussian);
  const Extents e = extents(whole, form);
  if (e.m == 0 || e.n == 0 || e.k == 0) return Outcome::not_applicable("there is no block");
  Random random = trial.random("block");
  const Index rows = std::min(e.m, random.between(1, 4));  // few rows have separate kernels
  constexpr float kSmallest = 0x1p-10F;                    // the scaled operand is not 0
  std::vector<float> left(whole.values[0].begin(), whole.values[0].begin() + rows * whole.shape(0)[1]);
  for (float& x : left) x = std::max(std::fabs(x), kSmallest);
  Problem problem = with_left(whole, form, std::move(left), rows);
  const Index j = random.between(0, e.n - 1), block = random.chance(0.5) ? 0 : random.between(0, nf4_blocks(e.k) - 1);
  constexpr unsigned kLargest = 15;
  for (Index p = block * kNf4Block; p < std::min(e.k, (block + 1) * kNf4Block); ++p)
    set_code(problem, 1, e.k, j, p, kLargest);
  problem.values[2][static_cast<std::size_t>(j * nf4_blocks(e.k) + block)] = std::numeric_limits<float>::infinity();
  return trial.against_oracle(Tier::worst_case, problem, trial.run(problem));
}

Outcome nf4_large(Trial& trial, Nf4Product form) {
  const Problem problem = trial.problem();
  if (!drawn_exact(trial))
    return Outcome::not_applicable("the inputs are not integers whose sums of products are exact");
  const Extents e = extents(problem, form);
  const Run run = trial.run(problem);
  const std::vector<float> weights = decoded(problem, form);
  const View<const float> w(weights.data(), {e.n, e.k});
  const contract::Certified certified =
      contract::freivalds_exact({problem.values[0].data(), problem.shape(0)},
                                form == Nf4Product::nt ? w.transposed() : w, {run.outputs[0].data(), problem.shape(3)});
  if (!certified.holds)
    return Outcome::falsify({Finding::Kind::value,
                             "a row of the product is wrong: " + certified.values,
                             std::string(output_name(trial)),
                             {},
                             0,
                             0,
                             0});
  Outcome outcome;
  for (const float x : run.outputs[0]) ++outcome.elements, outcome.nonzero += x != 0;
  return outcome;
}

}  // namespace assay::falsify
