// The certificate of rope and of its gradient.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Checks that every pair of y has the norm of the same pair of x [rows, heads, d]. Each of a pair's two results errs
/// by at most (|x1| + |x2|)(E + 3u + storage) plus underflow, with E the current library's error of sin and cos, and
/// the norm errs by at most sqrt(2) times that. Needs no angle; O(rows heads d).
Certified pair_norms(const StorageView& x, const StorageView& y, double interleaved);

}  // namespace assay::contract
