// What a kernel declares against what was measured.
#pragma once

#include <string>
#include <vector>

#include "falsify/audit/measure.hpp"

namespace assay::falsify::audit {

struct Disagreement {
  std::string property, says;
  bool holds_more = false;  ///< than is declared: no disagreement of a kernel with another sum that holds just that
};

/// Of one sum. A declaration is a promise for the kernel's weakest sum: a kernel of ours that holds more than it promises disagrees
/// too, since its bounds are then wider than they need be; but what it declares it may do (flush, fuse), or a library may do for it, it need not do.
std::vector<Disagreement> compare(const Kernel& kernel, const Sum& sum, const Measured& measured);

/// The engine holds the kernel to the statistical bound: it declares what that rests on.
bool statistical_tier_used(const Arithmetic& arithmetic);
/// What the statistical bound rests on was not seen to be false: additions round to nearest.
bool statistical_tier_justified(const Measured& measured);

}  // namespace assay::falsify::audit
