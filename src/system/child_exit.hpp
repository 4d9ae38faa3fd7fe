// How the processes that the engine forks end.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#if defined(ASSAY_COVERAGE)
#include <sys/wait.h>

extern "C" void __gcov_dump();  // <gcov.h> of GCC 12 is for C only
#endif

namespace assay::falsify {

/// Ends a forked process without the destructors and exit handlers of the process it was forked from.
[[noreturn]] inline void leave(int status) {
#if defined(ASSAY_COVERAGE)
  __gcov_dump();  // exit() would do it
#endif
  _exit(status);
}

/// Before the child `pid`, which has been told to leave, is killed: with coverage, time to write its counts. One that
/// hangs in a kernel never does.
inline void await_counts([[maybe_unused]] pid_t pid) {
#if defined(ASSAY_COVERAGE)
  siginfo_t ended{};
  for (int ms = 0; ms < 2000 && ended.si_pid == 0; ++ms) {
    if (waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (ended.si_pid == 0) usleep(1000);
  }
#endif
}

}  // namespace assay::falsify
