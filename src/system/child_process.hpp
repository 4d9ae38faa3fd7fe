// Child processes: forked here, and ended here with all their descendants. No child outlives the judging process.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace assay {

/// Calls fork(). This process becomes the subreaper of the child's orphans (PR_SET_CHILD_SUBREAPER) and no other
/// process may trace it from then on (sandbox.hpp). Throws Unavailable if no process can be started.
pid_t fork_process();

/// Time that killed processes have to end. Termination takes long while a driver reclaims work that a GPU still runs,
/// and does not happen while a debugger traces the process.
inline constexpr std::chrono::seconds kToEnd{10};

/// Ends the child and all its descendants, including reparented ones. Returns the child's wait status. Processes that
/// do not end within kToEnd are abandoned; an abandoned child has the status of a killed one.
int end_process(pid_t pid);

/// Waits at most `milliseconds` for `pid` to exit, without reaping it.
bool has_ended(pid_t pid, int milliseconds);

/// Kills, within kToEnd, the children of this process that fork_process() did not start: orphans of ended children.
void end_orphans();

}  // namespace assay
