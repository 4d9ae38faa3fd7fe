// What a verdict rests on besides sources: compiler, libraries, drivers. ci/environment.lock records those of CI.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/gate/tree.hpp"
#include "runtime/device.hpp"

namespace assay::falsify {

inline constexpr std::string_view kLockFile = "ci/environment.lock";
inline constexpr std::string_view kSetupFile = "ci/setup";

/// Values by entry: {"blas", "OpenBLAS 0.3.21"}.
using Environment = std::map<std::string, std::string>;

/// An entry, the kernels that it can change, and the packages of ci/setup that bring it, by a part of their names.
struct EnvironmentEntry {
  std::string_view name;
  std::vector<Backend> touches;
  std::vector<std::string_view> packages;
};
/// The table of all entries.
const std::vector<EnvironmentEntry>& environment_entries();

/// Whether an entry can change kernels of a back end; one that is not in the table changes all.
bool touches(std::string_view entry, Backend backend);

/// "blas: OpenBLAS 0.3.21", a line each; # begins a comment. Throws InputError naming the line.
Environment read_lock(const std::string& text);
std::string lock_text(const Environment& environment);
/// That of a tree; empty where there is none.
Environment lock_of(const Tree& tree);

/// Entries whose values differ, or that one of the two lacks.
std::vector<std::string> changed_entries(const Environment& before, const Environment& now);
/// Entries whose packages the two trees' ci/setup install differently.
std::vector<std::string> changed_packages(const Tree& before, const Tree& now);
/// Entries in which a machine differs from the lock. What the machine does not have it cannot run.
std::vector<std::string> differing(const Environment& lock, const Environment& machine);
/// One sentence on differing(); empty: the machine is as the lock says.
std::string machine_sentence(const Environment& lock, const Environment& machine);

}  // namespace assay::falsify
