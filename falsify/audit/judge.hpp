// Compares a kernel's declaration with the measurement.
#pragma once

#include <string>
#include <vector>

#include "falsify/audit/measure.hpp"

namespace assay::falsify::audit {

struct Disagreement {
  std::string property, says;
  /// more than declared: no disagreement if another sum of the kernel holds exactly the declared
  bool holds_more = false;
};

/// Compares one sum. A declaration is a promise for the kernel's weakest sum. A kernel of ours that holds more than it
/// declares disagrees too, since its bounds are wider than necessary; but declared permissions (flush, fuse) need not
/// be used, by the kernel or by a library.
std::vector<Disagreement> compare(const Kernel& kernel, const Sum& sum, const Measured& measured);

/// True if the declaration makes the engine use the statistical bound.
bool statistical_tier_used(const Arithmetic& arithmetic);
/// True if no measurement contradicts the premise of the statistical bound: additions round to nearest.
bool statistical_tier_justified(const Measured& measured);

}  // namespace assay::falsify::audit
