// Shared by the properties of NF4: codes that make a weight exact or one-hot, and the decoded matrix.
#pragma once

#include <vector>

#include "core/nf4.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify {

/// Sets code p of row j.
void set_code(Problem& problem, int codes, Index k, Index j, Index p, unsigned code);

/// Puts every entry of the codebook into every block, in either half of a byte.
void count_through_codes(Problem& problem, int codes);

/// Makes codes whose products with the other factor are exact in every order, if `strategy` is exact; all entries of
/// the codebook if it is `directed`.
void make_codes(Problem& problem, int codes, int absmax, int other, Index k, Strategy strategy, Random& random);

/// Returns the decoded matrix [n, k] of a problem's codes.
std::vector<float> weights_of(const Problem& problem, int codes, int absmax, Index n, Index k);

/// Changes the codes beyond column k: outputs must keep their bits.
Outcome padding_does_not_matter(Trial& trial, int codes, Index k);

}  // namespace assay::falsify
