// The certificate of q4_k_quantize.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Checks that every x [rows, k] lies within half a step, plus two roundings, of its value v in blocks [rows,
/// ceil(k/256)*144]: the code nearest to the rounded x + m is at most step / 2 from it, that sum rounds by at most u |x
/// + m|, v by at most u |v|, and a subnormal x counts as 0. A super-block with d = NaN is correct if one of its x is
/// not finite or too large for any half. O(rows k) in double.
Certified q4_k_round_trip(View<const float> x, View<const std::uint8_t> blocks);

}  // namespace assay::contract
