// Processes that run code of others, and what is left of them when they end. Such code may do anything to its own
// process: start others, hold descriptors, never return. None of it may outlive the process or reach the one that
// judges it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>

namespace assay::falsify {

/// fork(), with this process as the one to which orphans of the child's fall (PR_SET_CHILD_SUBREAPER). Throws
/// Unavailable where there is no process to be had.
pid_t fork_process();

/// Bytes of private memory that code of others may add to those its process has when it begins.
inline constexpr std::size_t kMemoryToAdd = std::size_t{4} << 30;

/// Bytes of private memory (heap, anonymous mappings, stacks) that this process has; 0 where the system does not say.
std::size_t data_bytes();

/// In the child, before code of others runs: a process group of its own, an end with its parent's, no descriptors but
/// `channel` and standard error (standard output goes there too: it is the report's), no core files. On the host also
/// kMemoryToAdd at most (not beside a sanitizer), and no signals to other processes (seccomp). Devices' drivers need both.
void contain_process(int channel, bool host);

/// How long killed processes have to end. That is the system's work, not theirs: it takes long where a driver takes from them what a GPU
/// still runs, and never comes while somebody traces them.
inline constexpr std::chrono::seconds kToEnd{10};

/// Ends the child and everything that it started, whoever is its parent by now. Gives the child's wait status. What has not ended within
/// kToEnd is left to end by itself, a child with the status of one that was killed.
int end_process(pid_t pid);

/// Waits until `pid` has ended by itself, at most `milliseconds`. It stays to be waited for.
bool has_ended(pid_t pid, int milliseconds);

/// Kills the children of this process that fork_process() did not make, orphans of ended ones, within kToEnd.
void end_orphans();

}  // namespace assay::falsify
