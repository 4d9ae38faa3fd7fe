// Exit of the processes that the engine forks.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#if defined(ASSAY_COVERAGE)
#include <sys/wait.h>

extern "C" void __gcov_dump();  // <gcov.h> of GCC 12 is for C only
#endif

namespace assay {

/// Ends a forked process without running the parent's destructors and exit handlers.
[[noreturn]] inline void leave(int status) {
#if defined(ASSAY_COVERAGE)
  __gcov_dump();  // exit() would call it
#endif
  _exit(status);
}

/// Called before killing the child `pid`, which was asked to exit: with coverage, gives it time to write its counts. A
/// child that hangs in a kernel never writes them.
inline void await_counts([[maybe_unused]] pid_t pid) {
#if defined(ASSAY_COVERAGE)
  siginfo_t ended{};
  for (int ms = 0; ms < 2000 && ended.si_pid == 0; ++ms) {
    if (waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (ended.si_pid == 0) usleep(1000);
  }
#endif
}

}  // namespace assay
