// Properties shared by the two products with a matrix in NF4 codes.
#pragma once

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

/// Y [m, n] = X [m, k] · Wᵀ, or DX [m, k] = DY [m, n] · W. Tensors: left factor, codes, absmax, product.
enum class Nf4Product { nt, plain };

void nf4_exact_codes(Problem& problem, Nf4Product form, Strategy strategy, Random& random);
/// Rows of the identity select rows or columns of W, bit for bit.
Outcome nf4_decodes(Trial& trial, Nf4Product form);
/// Powers of two of the left factor and of the scales commute with every rounding.
Outcome nf4_scaling(Trial& trial, Nf4Product form);
/// The left factor on a grid where sums are exact; within the three bounds.
Outcome nf4_linearity(Trial& trial, Nf4Product form);
/// One row of the left factor alone: bitwise on exact inputs, otherwise within both bounds.
Outcome nf4_single_row(Trial& trial, Nf4Product form);
/// nt: some rows of W alone give their columns, bitwise. plain: two parts of W add to the product, within the bounds.
Outcome nf4_weight_rows(Trial& trial, Nf4Product form);
/// Compares with the oracle of the product with the decoded matrix.
Outcome nf4_equals_dense(Trial& trial, Nf4Product form);
/// Checks longer sums than drawn cases have, with few outputs.
Outcome nf4_long_sums(Trial& trial, Nf4Product form);
/// Gives a block of one row of W an infinite scale, with products of one sign: compared with the oracle, within
/// worst-case bounds.
Outcome nf4_infinite_scale(Trial& trial, Nf4Product form);
/// Freivalds' check modulo 2^61 - 1.
Outcome nf4_large(Trial& trial, Nf4Product form);

}  // namespace assay::falsify
