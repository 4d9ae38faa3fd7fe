// The devices of this machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/device.hpp"

namespace assay::cli {

struct LocalDevice {
  bool here = false;
  bool on_processor = true;  ///< runs on the host's processor, even if it stands in for a GPU
  std::string driver;        ///< version of its kernel driver, if the system reports one
  std::string description{};
};

/// Returns "NVIDIA 580.95.05" from a line of /proc/driver/nvidia/version, for the open and the proprietary kernel
/// module; empty if the line has no version.
std::string nvidia_driver_in(const std::string& line);

/// Starts each device in a separate process, since none may be started before workers are forked.
std::map<Backend, LocalDevice> local_devices(const std::vector<Backend>& backends);

}  // namespace assay::cli
