// The environment of this program and machine, as ci/environment.lock records one.
#pragma once

#include "cli/local_devices.hpp"
#include "falsify/gate/environment.hpp"

namespace assay::cli {

/// Entries of what is here; `vulkan` is that device, where it is.
falsify::Environment local_environment(const LocalDevice& vulkan);

}  // namespace assay::cli
