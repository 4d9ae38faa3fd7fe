// Dense matrices for properties: parts and concatenations that make problems of linear layers.
#pragma once

#include <vector>

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

struct Matrix {
  Index rows = 0, columns = 0;
  std::vector<float> values;

  Matrix(Index r, Index c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
  Matrix(Index r, Index c, std::vector<float> v) : rows(r), columns(c), values(std::move(v)) {}
  /// Takes the values of a tensor of a problem.
  Matrix(const Problem& problem, int tensor)
      : rows(problem.shape(tensor)[0]), columns(problem.shape(tensor)[1]),
        values(problem.values[static_cast<std::size_t>(tensor)]) {}

  float& operator()(Index i, Index j) { return values[static_cast<std::size_t>(i * columns + j)]; }
  float operator()(Index i, Index j) const { return values[static_cast<std::size_t>(i * columns + j)]; }
  View<const float> view() const { return {values.data(), {rows, columns}}; }
};

inline Matrix transposed(const Matrix& x) {
  Matrix y(x.columns, x.rows);
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.columns; ++j) y(j, i) = x(i, j);
  return y;
}
inline Matrix scaled(Matrix x, float by) {
  for (float& v : x.values) v *= by;
  return x;
}
/// Returns rows, or columns, [from, to).
inline Matrix rows_of(const Matrix& x, Index from, Index to) {
  return {to - from, x.columns, {x.values.begin() + from * x.columns, x.values.begin() + to * x.columns}};
}
inline Matrix columns_of(const Matrix& x, Index from, Index to) { return transposed(rows_of(transposed(x), from, to)); }
inline Matrix identity_matrix(Index n) {
  Matrix eye(n, n);
  for (Index i = 0; i < n; ++i) eye(i, i) = 1;
  return eye;
}
/// Limit on the extent of an identity that multiplies a case's matrix: the square of a far dim would cost more than all
/// other cases.
inline constexpr Index kMaxOfIdentity = 1100;
/// Concatenates: y below x; y to the right of x.
inline Matrix stacked(Matrix x, const Matrix& y) {
  x.rows += y.rows;
  x.values.insert(x.values.end(), y.values.begin(), y.values.end());
  return x;
}
inline Matrix beside(const Matrix& x, const Matrix& y) { return transposed(stacked(transposed(x), transposed(y))); }

/// True if the values were drawn so that every order of evaluation gives the same bits.
inline bool drawn_exact(const Trial& trial) { return is_exact(trial.the_case(), trial.kernel().arithmetic); }

/// Adds y to x, element by element.
inline void add(std::vector<double>& x, const std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

/// Checks that indices [from, to) of the first dim alone give the same results as among the others, in every output
/// that has it: bitwise if every order of evaluation is exact, otherwise within the bounds of both.
Outcome rows_alone(Trial& trial, const Problem& whole, bool exact);

}  // namespace assay::falsify
