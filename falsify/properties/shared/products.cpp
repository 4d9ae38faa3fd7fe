#include "falsify/properties/shared/products.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "contract/certificates.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/properties/shared/matrices.hpp"

namespace assay::falsify {
namespace {

/// The factors of a problem as A [m, k] and B [k, n], for any storage of the operation.
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

Problem product_of(const OpDescriptor& op, DType storage, const Matrix& a, const Matrix& b, ProductForm form) {
  Problem problem{&op, {a.rows, a.columns}, {}, std::vector<std::vector<float>>(3), storage};
  if (op.dims.size() == 3) problem.dims.push_back(b.columns);
  problem.values[0] = form.a_transposed ? transposed(a).values : a.values;
  problem.values[1] = form.b_transposed ? transposed(b).values : b.values;
  return problem;
}

/// Returns a problem of the operation under test, in the kernel's storage format, which holds all of a and b.
Problem product_of(const Trial& trial, const Matrix& a, const Matrix& b, ProductForm form) {
  return product_of(trial.op(), trial.kernel().storage, a, b, form);
}

Shape product_shape(const Problem& problem) { return problem.shape(2); }
std::string_view product_name(const Trial& trial) { return trial.op().tensors[2].name; }

}  // namespace

std::vector<double> result_bounds(const Trial& trial, const Problem& problem) {
  return bounds_of(trial.oracle(problem)[0]);
}

std::vector<double> addend_bounds(const Trial& trial, const Problem& problem) {
  const std::vector<Bounded> want = trial.oracle(problem)[0];
  std::vector<double> bounds = bounds_of(want);
  for (std::size_t i = 0; i < want.size(); ++i)
    if (std::isinf(want[i].value)) bounds[i] = INFINITY;
  return bounds;
}

Outcome product_identity(Trial& trial, ProductForm form) {
  Problem problem = trial.problem();
  if (!trial.holds_floats()) problem = trial.problem(Strategy::exact_integers);
  const Matrix whole = factors_of(problem, form).a, a = columns_of(whole, 0, std::min(whole.columns, kMaxOfIdentity));
  const Problem identity = product_of(trial, a, identity_matrix(a.columns), form);
  const Run run = trial.run(identity);
  std::vector<Bounded> want(a.values.size());
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = Bounded::input(a.values[i]);
  return compare(Tier::exact, product_name(trial), product_shape(identity), run.outputs[0], want);
}

Outcome product_identity_of_vector(Trial& trial) {
  Problem problem = trial.problem();
  if (!trial.holds_floats()) problem = trial.problem(Strategy::exact_integers);
  const Matrix whole = factors_of(problem, {}).b, x = rows_of(whole, 0, std::min(whole.rows, kMaxOfIdentity));
  const Problem identity = product_of(trial, identity_matrix(x.rows), x, {});
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
  for (float& x : f.a.values) x = std::ldexp(x, s);
  for (float& x : f.b.values) x = std::ldexp(x, t);
  return trial.scales(problem, product_of(trial, f.a, f.b, form), {s + t});
}

// Bits only on exact inputs: correct kernels evaluate edge rows in another order than inner rows (OpenBLAS does).
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
  const Problem permuted = product_of(trial, moved, f.b, form);
  const Run run = trial.run(permuted);
  Matrix want(f.a.rows, f.b.columns);
  for (Index i = 0; i < want.rows; ++i)
    for (Index j = 0; j < want.columns; ++j)
      want(to[static_cast<std::size_t>(i)], j) = plain.outputs[0][static_cast<std::size_t>(i * want.columns + j)];
  std::vector<double> bound = result_bounds(trial, permuted);
  if (drawn_exact(trial)) std::ranges::fill(bound, 0.0);
  else
    for (double& b : bound) b *= 2;
  return compare_within(product_name(trial), product_shape(permuted), widened(run.outputs[0]), widened(want.values),
                        bound);
}

Outcome product_linearity(Trial& trial, ProductForm form) {
  Factors f = factors_of(trial.problem(), form);
  Random random = trial.random("linearity");
  Matrix other(f.b.rows, f.b.columns), both = other;
  // Multiples of 2^-10 below 2^12 in float32: any two of them add exactly. 16-bit formats have coarser grids.
  const DType storage = trial.kernel().storage;
  const int fine = storage == DType::f16 ? 6 : storage == DType::bf16 ? 5 : 10;
  const double limit = storage == DType::f16 ? 16 : storage == DType::bf16 ? 4 : 4096;
  const auto on_grid = [&](double x) {
    return static_cast<float>(std::ldexp(std::round(std::ldexp(std::fmod(x, limit), fine)), -fine));
  };
  for (std::size_t i = 0; i < other.values.size(); ++i) {
    f.b.values[i] = on_grid(f.b.values[i]);
    other.values[i] = on_grid(random.gaussian());
    both.values[i] = f.b.values[i] + other.values[i];
  }
  const Problem first = product_of(trial, f.a, f.b, form), second = product_of(trial, f.a, other, form),
                sum = product_of(trial, f.a, both, form);
  std::vector<double> parts = widened(trial.run(first).outputs[0]);
  add(parts, widened(trial.run(second).outputs[0]));
  const std::vector<double> whole = widened(trial.run(sum).outputs[0]);
  std::vector<double> bound = addend_bounds(trial, first);
  add(bound, addend_bounds(trial, second));
  add(bound, addend_bounds(trial, sum));
  return compare_within(product_name(trial), product_shape(sum), whole, parts, bound);
}

Outcome product_transposition(Trial& trial, ProductForm form) {
  const Problem problem = trial.problem();
  const Factors f = factors_of(problem, form);
  const Run plain = trial.run(problem);
  const Problem mirrored = product_of(trial, transposed(f.b), transposed(f.a), form);
  const Run run = trial.run(mirrored);
  Matrix c(f.a.rows, f.b.columns);
  c.values = plain.outputs[0];
  std::vector<double> bound = result_bounds(trial, mirrored);
  for (double& b : bound) b *= 2;
  return compare_within(product_name(trial), product_shape(mirrored), widened(run.outputs[0]),
                        widened(transposed(c).values), bound);
}

Outcome product_block_additivity(Trial& trial, ProductForm form) {
  const Problem problem = trial.problem();
  const Factors f = factors_of(problem, form);
  const Index k = f.a.columns;
  if (k == 0) return trial.against_oracle(Tier::worst_case, problem, trial.run(problem));
  Random random = trial.random("split");
  const auto takes = [&](Index terms) {
    std::vector<Index> dims = problem.dims;
    dims[1] = terms;
    return trial.takes(dims);
  };
  Index cut = random.between(0, k);
  for (int tries = 0; tries < 64 && !(takes(cut) && takes(k - cut)); ++tries) cut = random.between(0, k);
  const auto part = [&](Index from, Index to) {
    Matrix a(f.a.rows, to - from), b(to - from, f.b.columns);
    for (Index p = from; p < to; ++p) {
      for (Index i = 0; i < a.rows; ++i) a(i, p - from) = f.a(i, p);
      for (Index j = 0; j < b.columns; ++j) b(p - from, j) = f.b(p, j);
    }
    return product_of(trial, a, b, form);
  };
  const Problem head = part(0, cut), tail = part(cut, k);
  std::vector<double> parts = widened(trial.run(head).outputs[0]);
  add(parts, widened(trial.run(tail).outputs[0]));
  const Run whole = trial.run(problem);
  std::vector<double> bound = addend_bounds(trial, problem);
  add(bound, addend_bounds(trial, head));
  add(bound, addend_bounds(trial, tail));
  return compare_within(product_name(trial), product_shape(problem), widened(whole.outputs[0]), parts, bound);
}

namespace {

/// C = A · B, or a block of it with its rows of A and columns of B.
struct Block {
  View<const float> a, b, c;
  Index row = 0, column = 0;  ///< first row and column of the block in the whole

  contract::Certified check() const { return contract::freivalds_exact(a, b, c); }
  Block rows(Index from, Index count) const {
    return {{a.data() + from * a.stride(0), {count, a.dim(1)}, a.strides()},
            b,
            {c.data() + from * c.stride(0), {count, c.dim(1)}, c.strides()},
            row + from,
            column};
  }
  Block columns(Index from, Index count) const {
    return {a,
            {b.data() + from * b.stride(1), {b.dim(0), count}, b.strides()},
            {c.data() + from * c.stride(1), {c.dim(0), count}, c.strides()},
            row,
            column + from};
  }
};

/// Returns the problem's values as a matrix of its own shape (a vector is a column), or its transpose.
View<const float> matrix(const Shape& shape, const std::vector<float>& values, bool stored_transposed) {
  const View<const float> stored(values.data(), {shape[0], shape.rank() == 1 ? 1 : shape[1]});
  return stored_transposed ? stored.transposed() : stored;
}

/// Returns the largest sum of magnitudes along a row, infinite if an element is no integer; with `each`, the largest
/// magnitude.
double largest_sum(const View<const float>& v, bool each) {
  double most = 0;
  for (Index i = 0; i < v.dim(0); ++i) {
    double sum = 0;
    for (Index j = 0; j < v.dim(1); ++j) {
      const double x = v(i, j) == std::trunc(v(i, j)) ? std::fabs(v(i, j)) : INFINITY;
      sum = each ? std::max(sum, x) : sum + x;
    }
    most = std::max(most, sum);
  }
  return most;
}

/// True if the integers are so small that every sum of their products is an integer that C stores as it is, the premise
/// of Freivalds' check modulo a prime.
bool sums_are_exact(const Block& whole, DType stored) {
  const double limit = stored == DType::f16 ? 0x1p11 : stored == DType::bf16 ? 0x1p8 : 0x1p24;
  return largest_sum(whole.a, false) * largest_sum(whole.b, true) <= limit ||
         largest_sum(whole.a, true) * largest_sum(whole.b.transposed(), false) <= limit;
}

/// Finds the first wrong element of a block that fails its check.
Finding wrong_element(Block block, std::string_view tensor, int rank, const std::string& says) {
  while (block.c.dim(0) > 1) {
    const Index half = block.c.dim(0) / 2;
    const Block upper = block.rows(0, half);
    block = upper.check().holds ? block.rows(half, block.c.dim(0) - half) : upper;
  }
  while (block.c.dim(1) > 1) {
    const Index half = block.c.dim(1) / 2;
    const Block left = block.columns(0, half);
    block = left.check().holds ? block.columns(half, block.c.dim(1) - half) : left;
  }
  double want = 0;  // exact: integers below 2^53
  for (Index p = 0; p < block.a.dim(1); ++p) want += static_cast<double>(block.a(0, p)) * block.b(p, 0);
  const double got = block.c(0, 0);
  return {Finding::Kind::value,
          "got " + std::to_string(got) + ", want " + std::to_string(want) + " (" + says + ")",
          std::string(tensor),
          rank == 1 ? Shape{block.row} : Shape{block.row, block.column},
          got,
          want,
          0};
}

/// Extents beyond what an oracle affords; integers keep products exact.
const CheckDraws kLarge("large", {.strategies = {Strategy::exact_integers},
                                  .volume = 1 << 21,
                                  .large = true,
                                  .every = 10,
                                  .oracle_use = OracleUse::none});

}  // namespace

void make_sums_storable(Matrix& a, Matrix& b, DType stored, Random random) {
  if (stored == DType::f32) return;
  // 16 integers below 2^7 add up to at most 2^11, which f16 holds; below 2^4, to 2^8 of bf16. One term is a bias.
  constexpr Index kTerms = 15;
  const int limit = stored == DType::f16 ? 128 : 16;
  const auto selects = [](const Matrix& x) {
    return std::ranges::all_of(x.values, [](float v) { return std::fabs(v) <= 1; });
  };
  const auto narrow = [&](Matrix& x) {
    for (float& v : x.values) v = std::copysign(static_cast<float>(static_cast<int>(std::fabs(v)) % limit), v);
  };
  const auto keep_few = [&](Matrix& x, auto at, Index lines, Index length) {
    std::ranges::fill(x.values, 0.0F);
    for (Index line = 0; line < lines && length > 0; ++line)
      for (Index term = 0; term < kTerms; ++term)
        at(line, random.between(0, length - 1)) = random.chance(0.5) ? 1.0F : -1.0F;
  };
  if (selects(a)) {
    keep_few(
        a, [&](Index i, Index p) -> float& { return a(i, p); }, a.rows, a.columns);
    narrow(b);
  } else {
    keep_few(
        b, [&](Index j, Index p) -> float& { return b(p, j); }, b.columns, b.rows);
    narrow(a);
  }
}

Outcome product_large(Trial& trial, ProductForm form) {
  Problem problem = trial.problem();
  const bool drawn = drawn_exact(trial);
  const DType stored = problem.dtype(2);
  if (drawn && stored != DType::f32) {
    Factors f = factors_of(problem, form);
    make_sums_storable(f.a, f.b, stored, trial.random("terms"));
    problem = product_of(trial, f.a, f.b, form);
  }
  const Run run = trial.run(problem);
  const Block whole{matrix(problem.shape(0), problem.values[0], form.a_transposed),
                    matrix(problem.shape(1), problem.values[1], form.b_transposed),
                    matrix(product_shape(problem), run.outputs[0], false)};
  // Drawn values are exact by their strategy; the values of a replay file need not be.
  if (!drawn && (trial.kernel().arithmetic.accumulator != Format::f32 || !sums_are_exact(whole, stored)))
    return Outcome::not_applicable("the inputs are not integers whose sums of products are exact");
  return exact_product(product_name(trial), product_shape(problem).rank(), whole.a, whole.b, whole.c);
}

Outcome exact_product(std::string_view tensor, int rank, View<const float> a, View<const float> b,
                      View<const float> c) {
  const Block whole{a, b, c};
  const contract::Certified certified = whole.check();
  if (!certified.holds) return Outcome::falsify(wrong_element(whole, tensor, rank, certified.values));
  Outcome outcome;
  for (Index i = 0; i < c.dim(0); ++i)
    for (Index j = 0; j < c.dim(1); ++j) ++outcome.elements, outcome.nonzero += c(i, j) != 0;
  return outcome;
}

Outcome product_equals_matmul(Trial& trial, ProductForm form) {
  const Problem problem = trial.problem();
  const Factors f = factors_of(problem, form);
  const Run run = trial.run(problem);
  const std::vector<std::vector<Bounded>> want =
      trial.oracle(product_of(operation("matmul"), problem.dtype(2), f.a, f.b, ProductForm{}));
  return compare(Tier::worst_case, product_name(trial), product_shape(problem), run.outputs[0], want[0]);
}

}  // namespace assay::falsify
