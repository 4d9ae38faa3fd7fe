// The certificate of the copy of the parameters that an AdamW step makes.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Checks that each row of rounded [copies, n] is p [n] rounded once to its format, to nearest even, bit for bit; any NaN
/// stands for a NaN. Where the kernel's arithmetic flushes subnormals, a zero of either sign stands for a subnormal p.
/// O(copies n).
Certified rounded_once(View<const float> p, const StorageView& rounded);

}  // namespace assay::contract
