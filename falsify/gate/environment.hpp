// Dependencies of a verdict besides sources: compiler, libraries, drivers. ci/environment.lock records those of CI.
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
/// Entries of a build's options: "options of assay_kernels_cpu" (inputs.hpp).
inline constexpr std::string_view kOptionsOf = "options of ";

/// Versions are upstream's, without the distribution's revision: a rebuilt package changes no verdict.
/// Values by entry: {"blas", "OpenBLAS 0.3.21"}.
using Environment = std::map<std::string, std::string>;

/// An entry, the back ends that it can affect, and name parts of the packages in ci/setup that provide it.
struct EnvironmentEntry {
  std::string_view name;
  std::vector<Backend> touches;
  std::vector<std::string_view> packages;
};
/// Returns the table of all entries.
const std::vector<EnvironmentEntry>& environment_entries();

/// True if an entry can affect kernels of a back end; an entry outside the table affects all, unless it is of the options
/// of another back end's library (assay_kernels_cpu).
bool touches(std::string_view entry, Backend backend);

/// Parses "blas: OpenBLAS 0.3.21", a line each; # begins a comment. Throws InputError naming the line.
Environment read_lock(const std::string& text);
std::string lock_text(const Environment& environment);
/// Returns the lock of a tree; empty if there is none.
Environment lock_of(const Tree& tree);

/// Returns the entries whose values differ, or that one side lacks. The first options recorded are no change.
std::vector<std::string> changed_entries(const Environment& before, const Environment& now);
/// Returns the entries whose packages the two trees' ci/setup install differently.
std::vector<std::string> changed_packages(const Tree& before, const Tree& now);
/// Returns the entries in which a machine differs from the lock. Entries that the machine lacks do not count: it cannot
/// run their kernels. Those of single objects do count where the machine has the library.
std::vector<std::string> differing(const Environment& lock, const Environment& machine);
/// Describes differing() in one sentence; empty if the machine matches the lock.
std::string machine_sentence(const Environment& lock, const Environment& machine);

}  // namespace assay::falsify
