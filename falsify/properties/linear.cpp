// Properties of y = x · Wᵀ + bias (obligations of contracts/linear.yaml).
#include <algorithm>
#include <cmath>

#include "core/half.hpp"
#include "falsify/properties/shared/matrices.hpp"
#include "falsify/properties/shared/products.hpp"
#include "linear_obligations.hpp"

namespace assay::falsify {
namespace linear {
namespace {

Problem problem_of(const Trial& trial, const Matrix& x, const Matrix& weight, const Matrix& bias) {
  return {&trial.op(),
          {x.rows, x.columns, weight.rows, bias.rows},
          {},
          {x.values, weight.values, bias.values, {}},
          trial.kernel().storage};
}

/// Appends a column of ones to x if there is a bias, and the bias as the last column to W.
Matrix with_ones(const Matrix& x, Index biases) {
  return beside(x, Matrix(x.rows, biases, std::vector<float>(static_cast<std::size_t>(x.rows * biases), 1.0f)));
}
Matrix with_bias(const Matrix& weight, const Matrix& bias) { return beside(weight, transposed(bias)); }

}  // namespace
}  // namespace linear

Outcome linear::identity(Trial& trial) {
  const Problem problem = trial.problem();
  const Matrix whole(problem, 0), x = columns_of(whole, 0, std::min(whole.columns, kMaxOfIdentity));
  Matrix bias(problem.dims[3], x.columns);
  Random random = trial.random("bias");
  for (float& b : bias.values) b = stored(problem.storage, static_cast<float>(random.gaussian()));
  const Problem identity = problem_of(trial, x, identity_matrix(x.columns), bias);
  const Run run = trial.run(identity);
  if (!trial.holds_floats()) return trial.against_oracle(Tier::worst_case, identity, run);
  std::vector<Bounded> want;
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.columns; ++j)
      want.push_back(Bounded::input(bias.rows == 0 ? x(i, j) : x(i, j) + bias(0, j)));
  return compare(Tier::exact, "y", identity.shape(3), run.outputs[0], want, problem.storage);
}

Outcome linear::scaling(Trial& trial) {
  const Problem plain = trial.problem();
  Problem scaled = plain;
  Random random = trial.random("scaling");
  const int a = static_cast<int>(random.between(-4, 4)), b = static_cast<int>(random.between(-4, 4));
  const int exponents[] = {a, b, a + b};
  for (std::size_t t = 0; t < 3; ++t)
    for (float& v : scaled.values[t]) v = std::ldexp(v, exponents[t]);
  return trial.scales(plain, scaled, {a + b});
}

Outcome linear::bias_alone(Trial& trial) {
  Problem problem = trial.problem();
  for (float& x : problem.values[0]) x = 0;
  const Matrix bias(problem, 2);
  const Run run = trial.run(problem);
  if (!trial.holds_floats()) return trial.against_oracle(Tier::worst_case, problem, run);
  std::vector<Bounded> want;
  for (Index i = 0; i < problem.dims[0]; ++i)
    for (Index o = 0; o < bias.columns; ++o) want.push_back(Bounded::input(bias.rows == 0 ? 0.0f : bias(0, o)));
  return compare(Tier::exact, "y", problem.shape(3), run.outputs[0], want);
}

Outcome linear::row_slices(Trial& trial) { return rows_alone(trial, trial.problem(), drawn_exact(trial)); }

Outcome linear::block_additivity(Trial& trial) {
  const Problem problem = trial.problem();
  const Matrix x(problem, 0), weight(problem, 1), bias(problem, 2);
  const Index cut = trial.random("split").between(0, x.columns);
  const Problem head = problem_of(trial, columns_of(x, 0, cut), columns_of(weight, 0, cut), bias),
                tail = problem_of(trial, columns_of(x, cut, x.columns), columns_of(weight, cut, x.columns),
                                  Matrix(0, bias.columns));
  std::vector<double> parts = widened(trial.run(head).outputs[0]);
  add(parts, widened(trial.run(tail).outputs[0]));
  const Run whole = trial.run(problem);
  std::vector<double> bound = addend_bounds(trial, problem);
  for (const Problem* part : {&head, &tail}) add(bound, addend_bounds(trial, *part));
  return compare_within("y", problem.shape(3), widened(whole.outputs[0]), parts, bound);
}

Outcome linear::equals_matmul_nt(Trial& trial) {
  const Problem problem = trial.problem();
  const Matrix x = with_ones(Matrix(problem, 0), problem.dims[3]),
               weight = with_bias(Matrix(problem, 1), Matrix(problem, 2));
  const Run run = trial.run(problem);
  const Problem product{
      &operation("matmul_nt"), {x.rows, x.columns, weight.rows}, {}, {x.values, weight.values, {}}, problem.storage};
  return compare(Tier::worst_case, "y", problem.shape(3), run.outputs[0], trial.oracle(product)[0]);
}

Outcome linear::large(Trial& trial) {
  if (!drawn_exact(trial))
    return Outcome::not_applicable("the inputs are not drawn as integers whose sums of products are exact");
  Problem problem = trial.problem();
  if (problem.storage != DType::f32) {
    Matrix x(problem, 0), columns = transposed(Matrix(problem, 1));
    make_sums_storable(x, columns, problem.storage, trial.random("terms"));
    Matrix bias(problem, 2);
    for (float& b : bias.values) b = std::copysign(static_cast<float>(static_cast<int>(std::fabs(b)) % 16), b);
    problem = problem_of(trial, x, transposed(columns), bias);
  }
  const Matrix x = with_ones(Matrix(problem, 0), problem.dims[3]),
               weight = with_bias(Matrix(problem, 1), Matrix(problem, 2));
  const Run run = trial.run(problem);
  return exact_product("y", 2, x.view(), weight.view().transposed(), {run.outputs[0].data(), problem.shape(3)});
}

audit::Subject linear::audited() {
  return {.sums = {{.says = "y[0,0] over in",
                    .terms = audit::Terms::products,
                    .dims = {16, 64, 16, 0},
                    .count = 64,
                    .left = {0},
                    .right = {1},
                    .result = {3}}}};
}

}  // namespace assay::falsify
