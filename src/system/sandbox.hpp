// The sandbox in which foreign code runs: a kernel under test, or the constructors of its library. That code may do
// anything to its own process and nothing to the judging process: it cannot read, write, trace, signal or slow down
// another process, start a process that outlives it, or fill the machine's memory or disk.
//
// Three locks protect the judge's memory, because each is missing on some systems: the sandbox has a Landlock domain
// (its ptrace rule also closes /proc/PID/mem), the sandbox has no capability, and the judge is not dumpable.
#pragma once

#include <cstddef>

namespace assay {

/// host: a kernel that runs on this processor and needs few system calls. device: the GPU's driver runs in the same
/// process; it opens sockets, maps shared memory, writes caches and names its threads.
enum class Sandbox { host, device };

/// Bytes of private memory that a host kernel may add to its process.
inline constexpr std::size_t kMemoryToAdd = std::size_t{4} << 30;
/// Bytes that a host kernel may write to a single file.
inline constexpr std::size_t kFileBytes = std::size_t{64} << 20;

/// Returns the bytes of private memory (heap, anonymous mappings, stacks) of this process; 0 if the system does not
/// say.
std::size_t data_bytes();

/// Forbids other processes of this user to trace this one or open its memory, and disables core files
/// (PR_SET_DUMPABLE).
void forbid_tracing();

/// Locks in effect in a sandbox on this system.
struct Locks {
  bool landlock = false;      ///< no process outside can be traced
  bool capabilities = false;  ///< none is left
  bool system_calls = false;  ///< filtered
  bool files = false;         ///< no file can be written
  bool untraceable = false;   ///< the judging process is not dumpable
};

/// Locks this process in: a session of its own, no descriptors but `channel` and, as standard output and error,
/// `output`, no core files, no capabilities, no tracing or signalling of others. On the host also limits on memory and
/// files, no writes to the file system, no processes, no sockets. A lock that the system lacks is left out.
Locks enter_sandbox(int channel, int output, Sandbox kind);

/// Returns the locks in effect in a host sandbox, by entering one.
Locks locks_here();

}  // namespace assay
