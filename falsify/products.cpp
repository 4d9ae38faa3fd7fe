#include "falsify/products.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::falsify {
namespace {

/// A dense matrix of the property's own.
struct Matrix {
  Index rows = 0, columns = 0;
  std::vector<float> values;

  Matrix(Index r, Index c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
  float& operator()(Index i, Index j) { return values[static_cast<std::size_t>(i * columns + j)]; }
  float operator()(Index i, Index j) const { return values[static_cast<std::size_t>(i * columns + j)]; }
};

Matrix transposed(const Matrix& x) {
  Matrix y(x.columns, x.rows);
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.columns; ++j) y(j, i) = x(i, j);
  return y;
}

/// The factors of a problem as A [m, k] and B [k, n], however the operation stores them.
struct Factors {
  Matrix a, b;
};

Matrix factor(const Problem& problem, int tensor, bool stored_transposed) {
  const Shape shape = problem.shape(tensor);
  Matrix stored(shape[0], shape.rank() == 1 ? 1 : shape[1]);  // a vector is a column
  stored.values = problem.values[static_cast<std::size_t>(tensor)];
  return stored_transposed ? transposed(stored) : stored;
}

Factors factors_of(const Problem& problem, ProductForm form) {
  return {factor(problem, 0, form.a_transposed), factor(problem, 1, form.b_transposed)};
}

Problem product_of(const OpDescriptor& op, const Matrix& a, const Matrix& b, ProductForm form) {
  Problem problem{&op, {a.rows, a.columns}, {}, std::vector<std::vector<float>>(3)};
  if (op.dims.size() == 3) problem.dims.push_back(b.columns);
  problem.values[0] = form.a_transposed ? transposed(a).values : a.values;
  problem.values[1] = form.b_transposed ? transposed(b).values : b.values;
  return problem;
}

std::vector<double> widened(const std::vector<float>& x) { return {x.begin(), x.end()}; }

std::vector<double> errors(const Trial& trial, const Problem& problem) {
  const std::vector<std::vector<Bounded>> want = trial.oracle(problem);
  std::vector<double> bound;
  for (const Bounded& w : want[0]) bound.push_back(w.may_overflow ? INFINITY : w.error);
  return bound;
}

void add(std::vector<double>& x, const std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

Shape product_shape(const Problem& problem) { return problem.shape(2); }
std::string_view product_name(const Trial& trial) { return trial.op().tensors[2].name; }

}  // namespace

Outcome product_identity(Trial& trial, ProductForm form) {
  Problem problem = trial.problem();
  if (trial.kernel().arithmetic.inputs != Format::f32) problem = trial.problem(Strategy::exact_integers);
  const Matrix a = factors_of(problem, form).a;
  Matrix eye(a.columns, a.columns);
  for (Index i = 0; i < a.columns; ++i) eye(i, i) = 1;
  const Problem identity = product_of(trial.op(), a, eye, form);
  const Run run = trial.run(identity);
  std::vector<Bounded> want(a.values.size());
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = Bounded::input(a.values[i]);
  return compare(Tier::exact, product_name(trial), product_shape(identity), run.outputs[0], want);
}

Outcome product_identity_of_vector(Trial& trial) {
  Problem problem = trial.problem();
  if (trial.kernel().arithmetic.inputs != Format::f32) problem = trial.problem(Strategy::exact_integers);
  const Matrix x = factors_of(problem, {}).b;
  Matrix eye(x.rows, x.rows);
  for (Index i = 0; i < x.rows; ++i) eye(i, i) = 1;
  const Problem identity = product_of(trial.op(), eye, x, {});
  const Run run = trial.run(identity);
  std::vector<Bounded> want(x.values.size());
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = Bounded::input(x.values[i]);
  return compare(Tier::exact, product_name(trial), product_shape(identity), run.outputs[0], want);
}

Outcome product_scaling(Trial& trial, ProductForm form) {
  const Problem problem = trial.problem();
  Factors f = factors_of(problem, form);
  Random random = trial.random("scaling");
  const int s = static_cast<int>(random.between(-4, 4)), t = static_cast<int>(random.between(-4, 4));
  const Run plain = trial.run(problem);
  for (float& x : f.a.values) x = std::ldexp(x, s);
  for (float& x : f.b.values) x = std::ldexp(x, t);
  const Run scaled = trial.run(product_of(trial.op(), f.a, f.b, form));
  std::vector<float> want = plain.outputs[0];
  for (float& x : want) x = std::ldexp(x, s + t);
  return compare_bits(product_name(trial), product_shape(problem), scaled.outputs[0], want, "scaled factors, against the scaled product");
}

Outcome product_row_permutation(Trial& trial, ProductForm form) {
  const Problem problem = trial.problem();
  const Factors f = factors_of(problem, form);
  std::vector<Index> to(static_cast<std::size_t>(f.a.rows));
  std::iota(to.begin(), to.end(), Index{0});
  Random random = trial.random("permutation");
  for (std::size_t i = to.size(); i > 1; --i) std::swap(to[i - 1], to[random.below(i)]);
  Matrix moved(f.a.rows, f.a.columns);
  for (Index i = 0; i < f.a.rows; ++i)
    for (Index p = 0; p < f.a.columns; ++p) moved(to[static_cast<std::size_t>(i)], p) = f.a(i, p);
  const Run plain = trial.run(problem);
  const Problem permuted = product_of(trial.op(), moved, f.b, form);
  const Run run = trial.run(permuted);
  Matrix want(f.a.rows, f.b.columns);
  for (Index i = 0; i < want.rows; ++i)
    for (Index j = 0; j < want.columns; ++j)
      want(to[static_cast<std::size_t>(i)], j) = plain.outputs[0][static_cast<std::size_t>(i * want.columns + j)];
  std::vector<double> bound = errors(trial, permuted);
  if (is_exact(trial.the_case().strategy) && trial.the_case().values.empty()) std::ranges::fill(bound, 0.0);
  else for (double& b : bound) b *= 2;
  return compare_within(product_name(trial), product_shape(permuted), widened(run.outputs[0]), widened(want.values), bound);
}

Outcome product_linearity(Trial& trial, ProductForm form) {
  Factors f = factors_of(trial.problem(), form);
  Random random = trial.random("linearity");
  Matrix other(f.b.rows, f.b.columns), both = other;
  // Multiples of 2^-10 below 2^12: any two of them add exactly.
  const auto on_grid = [](double x) { return static_cast<float>(std::ldexp(std::round(std::ldexp(std::fmod(x, 4096.0), 10)), -10)); };
  for (std::size_t i = 0; i < other.values.size(); ++i) {
    f.b.values[i] = on_grid(f.b.values[i]);
    other.values[i] = on_grid(random.gaussian());
    both.values[i] = f.b.values[i] + other.values[i];
  }
  const Problem first = product_of(trial.op(), f.a, f.b, form), second = product_of(trial.op(), f.a, other, form),
                sum = product_of(trial.op(), f.a, both, form);
  std::vector<double> parts = widened(trial.run(first).outputs[0]);
  add(parts, widened(trial.run(second).outputs[0]));
  const std::vector<double> whole = widened(trial.run(sum).outputs[0]);
  std::vector<double> bound = errors(trial, first);
  add(bound, errors(trial, second));
  add(bound, errors(trial, sum));
  return compare_within(product_name(trial), product_shape(sum), whole, parts, bound);
}

Outcome product_transposition(Trial& trial, ProductForm form) {
  const Problem problem = trial.problem();
  const Factors f = factors_of(problem, form);
  const Run plain = trial.run(problem);
  const Problem mirrored = product_of(trial.op(), transposed(f.b), transposed(f.a), form);
  const Run run = trial.run(mirrored);
  Matrix c(f.a.rows, f.b.columns);
  c.values = plain.outputs[0];
  std::vector<double> bound = errors(trial, mirrored);
  for (double& b : bound) b *= 2;
  return compare_within(product_name(trial), product_shape(mirrored), widened(run.outputs[0]), widened(transposed(c).values), bound);
}

Outcome product_block_additivity(Trial& trial, ProductForm form) {
  const Problem problem = trial.problem();
  const Factors f = factors_of(problem, form);
  const Index k = f.a.columns;
  if (k == 0) return trial.against_oracle(Tier::worst_case, problem, trial.run(problem));
  Random random = trial.random("split");
  const Index cut = random.between(0, k);
  const auto part = [&](Index from, Index to) {
    Matrix a(f.a.rows, to - from), b(to - from, f.b.columns);
    for (Index p = from; p < to; ++p) {
      for (Index i = 0; i < a.rows; ++i) a(i, p - from) = f.a(i, p);
      for (Index j = 0; j < b.columns; ++j) b(p - from, j) = f.b(p, j);
    }
    return product_of(trial.op(), a, b, form);
  };
  const Problem head = part(0, cut), tail = part(cut, k);
  std::vector<double> parts = widened(trial.run(head).outputs[0]);
  add(parts, widened(trial.run(tail).outputs[0]));
  const Run whole = trial.run(problem);
  std::vector<double> bound = errors(trial, problem);
  add(bound, errors(trial, head));
  add(bound, errors(trial, tail));
  return compare_within(product_name(trial), product_shape(problem), widened(whole.outputs[0]), parts, bound);
}

Outcome product_equals_matmul(Trial& trial, ProductForm form) {
  const Problem problem = trial.problem();
  const Factors f = factors_of(problem, form);
  const Run run = trial.run(problem);
  const std::vector<std::vector<Bounded>> want =
      trial.oracle(product_of(operation("matmul"), f.a, f.b, ProductForm{}));
  return compare(Tier::worst_case, product_name(trial), product_shape(problem), run.outputs[0], want[0]);
}

}  // namespace assay::falsify
