// Child processes: forked here, ended here with everything that they started. None outlives the process that judges it.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace assay::falsify {

/// fork(), with this process as the one to which orphans of the child's fall (PR_SET_CHILD_SUBREAPER) and which no other
/// may trace from now on (sandbox.hpp). Throws Unavailable if no process can be started.
pid_t fork_process();

/// Time that killed processes have to end. Ending them is the system's work: it takes long while a driver reclaims what a
/// GPU still runs, and never happens while a debugger traces them.
inline constexpr std::chrono::seconds kToEnd{10};

/// Ends the child and everything that it started, whoever is its parent by now. Gives the child's wait status. What has not ended within
/// kToEnd is left to end by itself, a child with the status of one that was killed.
int end_process(pid_t pid);

/// Waits at most `milliseconds` for `pid` to exit, without reaping it.
bool has_ended(pid_t pid, int milliseconds);

/// Kills, within kToEnd, the children of this process that fork_process() did not start: orphans of ended ones.
void end_orphans();

}  // namespace assay::falsify
