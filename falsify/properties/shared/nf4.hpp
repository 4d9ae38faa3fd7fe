// What the properties of NF4 share: codes that make a weight exact or one-hot, and the matrix that codes stand for.
#pragma once

#include <vector>

#include "core/nf4.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify {

/// Sets code p of row j.
void set_code(Problem& problem, int codes, Index k, Index j, Index p, unsigned code);

/// Every entry of the codebook in every block, in either half of a byte.
void count_through_codes(Problem& problem, int codes);

/// Codes with which products with the other factor are exact in every order, where `strategy` asks for that; all entries
/// of the codebook, where it is `directed`.
void make_codes(Problem& problem, int codes, int absmax, int other, Index k, Strategy strategy, Random& random);

/// The matrix [n, k] that a problem's codes stand for.
std::vector<float> weights_of(const Problem& problem, int codes, int absmax, Index n, Index k);

/// Codes behind column k changed: outputs keep their bits.
Outcome padding_does_not_matter(Trial& trial, int codes, Index k);

}  // namespace assay::falsify
