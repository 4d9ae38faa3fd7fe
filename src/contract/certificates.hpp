// Certificates: postconditions that verify a whole result in linear time.
#pragma once

#include <string>

#include "core/view.hpp"

namespace assay::contract {

/// Result of a certificate; on failure `values` names the row and its numbers.
struct Certified {
  bool holds = true;
  std::string values;
};

/// Terms of a kernel's sums that are not single products of floats.
struct ProductTerms {
  int operations = 1;         ///< products or quotients, each of which rounds
  double absolute = 0;        ///< absolute error of an element of B, independent of its size
  double range = 1;           ///< >= 1: ratio of the largest intermediate to the terms that reach the result
  DType result = DType::f32;  ///< format in which C was stored, rounded to nearest
};

/// Freivalds' check of C = A · B for a [m, k], b [k, n], c [m, n], any strides: C·r = A·(B·r) for random signs r, which
/// depend on a counter of calls and never on the data. Row i holds if
///
///   |(C·r)_i - (A·(B·r))_i| <= g min(lambda, sqrt(n)) sum_p |a_ip| ||b_p||_2 + underflow + evaluation,
///
/// with g the worst relative error of one element under current_arithmetic() (core/bounded.hpp). Derivation: C·r -
/// A·(B·r) is sum_j r_j e_ij with |e_ij| <= g sum_p |a_ip| |b_pj|, and the 2-norm over j of that is at most g sum_p
/// |a_ip| ||b_p||_2 (Minkowski). Signs are independent of the errors, so Hoeffding's inequality bounds the sum by
/// lambda times the norm, and Cauchy's by sqrt(n) times: nothing is assumed about A, B or rounding. lambda = 7.5: a
/// correct row fails once in 8e11. If C is stored in 16 bits, s_ij is half a unit in the last place of c_ij: the bound
/// grows by min(lambda, sqrt(n)) ||s_i||_2.
///
/// An error of one element is detected if it exceeds twice the row's bound. If several elements of a row are wrong, it
/// is detected with probability at least 1/2. NaN and infinities are checked by class, element by element, in the rows
/// of A and columns of B that contain one. In rows that may overflow, non-finite results are accepted.
/// O(m k + k n + m n) time, in double; O(m + k + n) memory if all elements are finite.
/// Source: Freivalds, MFCS 1979; Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.5.
Certified freivalds(View<const float> a, View<const float> b, View<const float> c, const ProductTerms& terms = {});
/// The same for matrices in any storage format; copies those in 16 bits.
Certified freivalds(const StorageView& a, const StorageView& b, const StorageView& c);

/// Like freivalds(), modulo 2^61 - 1, for integers small enough that C is exact. r is uniform, so that any wrong row
/// passes with probability 2^-61. a and b must hold integers below 2^31 in magnitude, otherwise std::logic_error is
/// thrown; an element of c that is not such an integer fails.
Certified freivalds_exact(View<const float> a, View<const float> b, View<const float> c);

}  // namespace assay::contract
