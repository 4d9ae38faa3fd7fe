// Metamorphic properties shared by the products C = op(A) · op(B): matmul, matmul_nt, matmul_tn, and gemv, with a
// column as B.
#pragma once

#include "falsify/engine/trial.hpp"
#include "falsify/properties/shared/matrices.hpp"

namespace assay::falsify {

/// Storage of the factors: A as [m, k] or [k, m], B as [k, n] or [n, k].
struct ProductForm {
  bool a_transposed = false;
  bool b_transposed = false;
};

/// Returns the bounds on the difference between the first output and the oracle.
std::vector<double> result_bounds(const Trial& trial, const Problem& problem);
/// Returns the same for results that are added up: infinite where a result is, since f16 overflows at 65520, and the sum
/// of two results may be far below.
std::vector<double> addend_bounds(const Trial& trial, const Problem& problem);
/// A · I = A (as numbers: a zero may have either sign).
Outcome product_identity(Trial& trial, ProductForm form);
/// I · x = x.
Outcome product_identity_of_vector(Trial& trial);
/// (2^s A) · (2^t B) = 2^(s+t) A · B (Trial::scales).
Outcome product_scaling(Trial& trial, ProductForm form);
/// Permuting the rows of op(A) permutes the rows of C: bitwise on exact inputs, otherwise within the bounds.
Outcome product_row_permutation(Trial& trial, ProductForm form);
/// A · (B + B') = A · B + A · B' within the three bounds; B and B' on a grid where their sum is exact.
Outcome product_linearity(Trial& trial, ProductForm form);
/// (A · B)ᵀ = Bᵀ · Aᵀ within both bounds.
Outcome product_transposition(Trial& trial, ProductForm form);
/// Splitting K in two and adding the products gives the product, within the three bounds.
Outcome product_block_additivity(Trial& trial, ProductForm form);
/// On exact integers checks every element of C, at sizes without a cubic oracle: Freivalds' check modulo 2^61 - 1 costs
/// O(mk + kn + mn), misses a wrong product with a probability of 2^-61, and bisection finds the element.
Outcome product_large(Trial& trial, ProductForm form);
/// The same for any matrices: c [m, n] = a [m, k] · b [k, n], if integers make every sum of products a float; `rank` is
/// the rank of c's tensor.
Outcome exact_product(std::string_view tensor, int rank, View<const float> a, View<const float> b, View<const float> c);
/// Makes sums of products, and one integer more, integers that a 16-bit format holds: at most 15 terms of a sum are not
/// zero, and factors are small. Does nothing for float32, whose exact integers need no change.
void make_sums_storable(Matrix& a, Matrix& b, DType stored, Random random);
/// The result equals the oracle of the plain product of the factors laid out as [m, k] and [k, n].
Outcome product_equals_matmul(Trial& trial, ProductForm form);

}  // namespace assay::falsify
