#include "runtime/host_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace assay {
namespace {

using std::filesystem::path;

/// Returns the number after `key` in a file of lines "key number" or "key: number"; with an empty key, the file's only
/// number. Empty if the file, the line or the number is missing ("max" means no limit).
std::optional<std::uint64_t> number(const path& file, const std::string& key = {}) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t digits = line.find_first_not_of(": \t", key.size());
    if (digits == std::string::npos || line[digits] < '0' || line[digits] > '9') continue;
    return std::stoull(line.substr(digits));
  }
  return std::nullopt;
}

/// File names of one version of control groups.
struct Controller {
  const char* limit;
  const char* usage;
  const char* reclaimable;  ///< key of memory.stat: file pages that the kernel reclaims on demand
};
constexpr Controller kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Controller kVersion2{"memory.max", "memory.current", "inactive_file"};

void apply(const path& group, const Controller& files, MemoryInfo& info) {
  const auto limit = number(group / files.limit), usage = number(group / files.usage);
  if (!limit || !usage) return;
  const std::uint64_t given_up = number(group / "memory.stat", files.reclaimable).value_or(0);
  const std::uint64_t held = *usage - std::min(*usage, given_up);
  info.total = std::min(info.total, *limit);
  info.available = std::min(info.available, *limit - std::min(*limit, held));
}

/// Applies the limits of the group and of all groups around it. In a container the path may lead outside the mounts:
/// the container's own group is then at the top.
void apply_all(const path& top, const path& group, const Controller& files, MemoryInfo& info) {
  apply(top, files, info);
  path at = top;
  for (const path& part : group.relative_path()) apply(at /= part, files, info);
}

}  // namespace

MemoryInfo host_memory(const path& root) {
  const path meminfo = root / "proc/meminfo", groups = root / "sys/fs/cgroup";
  MemoryInfo info{1024 * number(meminfo, "MemTotal").value_or(0), 1024 * number(meminfo, "MemAvailable").value_or(0)};
  std::ifstream own(root / "proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {  // "4:memory:/user/1", "0::/user/1"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) apply_all(groups, group, kVersion2, info);
    else if (("," + controllers + ",").find(",memory,") != std::string::npos)
      apply_all(groups / "memory", group, kVersion1, info);
  }
  return info;
}

}  // namespace assay
