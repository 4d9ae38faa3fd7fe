// Checks the premise of the statistical bound before it is used.
#pragma once

#include <optional>
#include <string>

#include "falsify/engine/trial.hpp"

namespace assay::falsify::audit {

/// Returns evidence that the kernel's additions do not round to nearest in the declared accumulator; empty if they do,
/// or if no sum of the operation shows it. Takes at most four calls for a kernel that rounds to nearest.
std::optional<std::string> contradicts_nearest(Trial& trial);

/// `by: statistical`: every operation gets this check by naming it (falsify/engine/obligation.hpp).
Outcome statistical(Trial& trial);

}  // namespace assay::falsify::audit
