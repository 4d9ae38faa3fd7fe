// The certificate of softmax.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Checks that every row of y [rows, n] lies in [0, 1] and sums to 1. With computed terms t_k and their computed sum T
/// = (1 + s) sum t_k, y_j = t_j / T (1 + q) (1 + r_j): s is the sum's growth, q the error of the quotient, r_j that of
/// the exponential and rescalings. The sum and the quotient may round their terms separately: |r_j| is at most twice
/// the library's error of exp(x_j - m). A row of zeros is correct if all of x is -inf; rows with NaN or +inf in x are
/// skipped. The store rounds each y_j once more. O(rows n) in double.
Certified distributions(const StorageView& x, const StorageView& y);

}  // namespace assay::contract
