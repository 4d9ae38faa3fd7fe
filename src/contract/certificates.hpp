// Certificates: postconditions that verify a whole result at the cost of reading it.
#pragma once

#include <string>

#include "core/view.hpp"

namespace assay::contract {

/// What a certificate came to; `values` names the row and the figures where it does not hold.
struct Certified {
  bool holds = true;
  std::string values;
};

/// How the terms of a kernel's sums come about, where that is not by one product each.
struct ProductTerms {
  int operations = 1;   ///< products or quotients, each of which rounds
  double absolute = 0;  ///< what an element of B may be off, whatever its size
  double range = 1;     ///< at least 1: intermediate results may be so many times what counts of them
};

/// Freivalds' check of C = A · B for a [m, k], b [k, n], c [m, n], any strides: C·r = A·(B·r) for random signs r, which
/// are drawn from a count of calls and never from the data. Row i holds where
///
///   |(C·r)_i - (A·(B·r))_i| <= g min(lambda, sqrt(n)) sum_p |a_ip| ||b_p||_2 + underflow + evaluation,
///
/// g the worst relative error of one element under current_arithmetic() (core/bounded.hpp). Derivation: C·r - A·(B·r)
/// is sum_j r_j e_ij with |e_ij| <= g sum_p |a_ip| |b_pj|, and the 2-norm over j of that is at most
/// g sum_p |a_ip| ||b_p||_2 (Minkowski). Signs are independent of the errors, so Hoeffding's inequality bounds the sum
/// by lambda times the norm, and Cauchy's by sqrt(n) times: nothing is assumed about A, B or rounding. lambda = 7.5:
/// a correct row fails once in 8e11.
///
/// A wrong element is seen where its error passes twice the row's bound, errors of several elements of one row with
/// a chance of at least 1/2 more. NaN and infinities are checked by class, element by element, in the rows of A and
/// columns of B that hold one; where a row may overflow, non-finite results are accepted.
/// O(m k + k n + m n) time, in double; O(m + k + n) memory unless something is not finite.
/// Source: Freivalds, MFCS 1979; Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.5.
Certified freivalds(View<const float> a, View<const float> b, View<const float> c, const ProductTerms& terms = {});

/// The same check modulo 2^61 - 1, for integers small enough that C is exact: r is uniform, so that a wrong row
/// passes with a chance of 2^-61, whatever is wrong in it. a and b must hold integers below 2^31 in magnitude, or
/// std::logic_error is thrown; an element of c that is no such integer fails.
Certified freivalds_exact(View<const float> a, View<const float> b, View<const float> c);

}  // namespace assay::contract
