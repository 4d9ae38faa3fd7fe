// The memory of this machine as the operating system reports it.
#pragma once

#include <filesystem>

#include "runtime/device.hpp"

namespace assay {

/// Returns the memory available to this process: the machine's (`MemAvailable` of /proc/meminfo: free or reclaimable),
/// or less if a control group of this process or one around it (version 1 or 2) sets a limit. `root` contains `proc`
/// and `sys`.
MemoryInfo host_memory(const std::filesystem::path& root = "/");

}  // namespace assay
