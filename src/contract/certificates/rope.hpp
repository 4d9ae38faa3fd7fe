// The certificate of rope and of its gradient.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Every pair of y has the norm of that pair of x [rows, heads, d]. Each of a pair's two results errs by at most
/// (|x1| + |x2|)(E + 3u + storage) and underflow, E what the library in force promises of sin and cos, and the norm by at
/// most sqrt(2) times that. Needs no angle; O(rows heads d).
Certified pair_norms(const StorageView& x, const StorageView& y, double interleaved);

}  // namespace assay::contract
