// The certificate of nf4_quantize.
#pragma once

#include <cstdint>

#include "contract/certificates.hpp"

namespace assay::contract {

/// Checks |x - c_q a| <= |x - c_r a| + 4 u a, r = q - 1 and q + 1, for every element of a block whose absmax a is
/// finite and not 0: up to rounding, no neighbouring entry of the codebook is nearer. x <= fl(fl(mid) a) implies 2 (x -
/// mid a) <= 2 d, the difference of those distances, with |fl(fl(mid) a) - mid a| <= d = 2 u (1 + u) |mid| a and |mid|
/// < 1 / (1 + u). Computed in double, which represents c_q a exactly. x [n, k], codes [n, 32 b], absmax [n, b], b =
/// ceil(k / 64). O(n k).
Certified nf4_nearest(View<const float> x, View<const std::uint8_t> codes, View<const float> absmax);

}  // namespace assay::contract
