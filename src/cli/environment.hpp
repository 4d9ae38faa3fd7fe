// The environment of this program and machine, in the form of ci/environment.lock.
#pragma once

#include "cli/local_devices.hpp"
#include "falsify/gate/environment.hpp"

namespace assay::cli {

/// Returns the entries of this machine; `vulkan` is the Vulkan device, if there is one.
falsify::Environment local_environment(const LocalDevice& vulkan);

}  // namespace assay::cli
