// The certificate of nf4_absmax_quantize.
#pragma once

#include <cstdint>

#include "contract/certificates.hpp"

namespace assay::contract {

/// With u = 2^-24 and a[i] the effective values of absmax [n, b] (0 below 2^-120), checks:
/// |offset - mean a| <= (8 l + 3) u mean a: l levels of 8 roundings add up n b <= 256^l values, and the reciprocal and
/// the product cost two more;
/// |absmax2 - max |a - offset|| <= u max |a - offset| over its group, since rounding is monotone;
/// |a - c_q s - offset| <= |a - c_r s - offset| + 8 u s, r = q - 1 and q + 1, s = absmax2: fl(a - offset) <= fl(fl(mid)
/// s) implies 2 (a - offset - mid s) <= 2 (u |a - offset| + 2 u |mid| s) (1 + u), and neither factor exceeds (1 + u) s.
/// If a value is NaN, infinite or negative, or the sum overflows, offset and absmax2 must be NaN. Computed in double,
/// which represents c_q s exactly. codes [256 g], absmax2 [g], offset [1]. O(n b).
Certified nf4_absmax_nearest(View<const float> absmax, View<const std::uint8_t> codes, View<const float> absmax2,
                             View<const float> offset);

}  // namespace assay::contract
