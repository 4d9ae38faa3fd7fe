// What the devices of this machine are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/device.hpp"

namespace assay::cli {

struct LocalDevice {
  bool here = false;
  bool on_processor = true;  ///< it runs on the host's processor, also where it stands in for a GPU
  std::string driver;        ///< version of its kernel driver, where the system names one
  std::string description{};
};

/// "NVIDIA 580.95.05" from a line of /proc/driver/nvidia/version, for the open kernel module and the other; empty where it names no version.
std::string nvidia_driver_in(const std::string& line);

/// Starts each device in a process of its own, since none may be started before workers are forked.
std::map<Backend, LocalDevice> local_devices(const std::vector<Backend>& backends);

}  // namespace assay::cli
