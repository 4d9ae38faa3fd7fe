// The sandbox in which foreign code runs: a kernel under test, or the constructors of its library. That code may do
// anything to its own process and nothing to the process that judges it: it cannot read, write, trace, signal or slow
// down another process, start one that outlives it, or fill the machine's memory or disk.
//
// The memory of the judge is closed three times over, because each lock is missing somewhere: the sandbox has a Landlock
// domain (its ptrace rule also closes /proc/PID/mem), the sandbox has no capability, and the judge is not dumpable.
#pragma once

#include <cstddef>

namespace assay::falsify {

/// host: a kernel that runs on this processor, which needs little of the system. device: the driver of a GPU runs in the
/// same process; it opens sockets, maps shared memory, writes caches and names its threads.
enum class Sandbox { host, device };

/// Bytes of private memory that a kernel on the host may add to those of its process.
inline constexpr std::size_t kMemoryToAdd = std::size_t{4} << 30;
/// Bytes that a kernel on the host may write to any one file.
inline constexpr std::size_t kFileBytes = std::size_t{64} << 20;

/// Bytes of private memory (heap, anonymous mappings, stacks) of this process; 0 if the system does not say.
std::size_t data_bytes();

/// No other process of this user may trace this one or open its memory, and it leaves no core file (PR_SET_DUMPABLE).
void forbid_tracing();

/// What holds in a sandbox on this system.
struct Locks {
  bool landlock = false;      ///< nothing outside can be traced
  bool capabilities = false;  ///< none is left
  bool system_calls = false;  ///< filtered
  bool files = false;         ///< none can be written
  bool untraceable = false;   ///< the process that judges is not dumpable
};

/// Locks this process in: a session of its own, no descriptors but `channel` and, as standard output and error, `output`,
/// no core files, no capabilities, no tracing or signalling of others. On the host also
/// limits on memory and files, no writes to the file system, no processes, no sockets. What the system lacks stays open.
Locks enter_sandbox(int channel, int output, Sandbox kind);

/// What holds in a sandbox for the host, found out in one.
Locks locks_here();

}  // namespace assay::falsify
