// The certificate of softmax.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Every row of y [rows, n] lies in [0, 1] and sums to 1. With computed terms t_k and their computed sum T = (1 + s) sum t_k,
/// y_j = t_j / T (1 + q) (1 + r_j): s is the sum's growth, q of the quotient, r_j of the exponential and rescalings, which the
/// term of the sum and that of the quotient may round apart: |r_j| <= what the library promises of exp(x_j - m) twice.
/// A row of zeros is right where x is -inf all along; a row with NaN or +inf in x is not looked at. O(rows n) in double.
Certified distributions(View<const float> x, View<const float> y);

}  // namespace assay::contract
