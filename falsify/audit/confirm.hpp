// What the statistical bound rests on, looked at before it is used.
#pragma once

#include <optional>
#include <string>

#include "falsify/engine/trial.hpp"

namespace assay::falsify::audit {

/// Why the kernel's additions do not round to nearest in the accumulator that it declares, by at most four calls; empty where
/// they do, or where no sum of the operation shows it.
std::optional<std::string> contradicts_nearest(Trial& trial);

/// `by: statistical`: every operation gets this check by naming it (falsify/engine/obligation.hpp).
Outcome statistical(Trial& trial);

}  // namespace assay::falsify::audit
