// Processes that run code of others, and what is left of them when they end. Such code may do anything to its own
// process: start others, hold descriptors, never return. None of it may outlive the process or reach the one that
// judges it.
#pragma once

#include <sys/types.h>

namespace assay::falsify {

/// fork(), with this process as the one to which orphans of the child's fall (PR_SET_CHILD_SUBREAPER). Throws
/// Unavailable where there is no process to be had.
pid_t fork_process();

/// In the child, before code of others runs: a process group of its own, an end with its parent's, no descriptors but
/// `channel` and standard error (standard output goes there too: it is the report's), no core files. On the host also 4
/// GiB of memory at most beyond what it has now, and no signals to other processes (seccomp). Devices' drivers need
/// both.
void contain_process(int channel, bool host);

/// Ends the child and everything that it started, whoever is its parent by now. Gives the child's wait status.
int end_process(pid_t pid);

/// Waits until `pid` has ended by itself, at most `milliseconds`. It stays to be waited for.
bool has_ended(pid_t pid, int milliseconds);

/// Kills the children of this process that fork_process() did not make: orphans of ended ones.
void end_orphans();

}  // namespace assay::falsify
