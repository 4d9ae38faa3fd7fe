// The memory of this machine as the operating system reports it.
#pragma once

#include <filesystem>

#include "runtime/device.hpp"

namespace assay {

/// What this process may have: the machine's memory (`MemAvailable` of /proc/meminfo: free, or given up when asked
/// for), or less where a control group of this process or one around it (version 1 or 2) sets a limit. `root` holds
/// `proc` and `sys`.
MemoryInfo host_memory(const std::filesystem::path& root = "/");

}  // namespace assay
