// SIGINT and SIGTERM as a request to end a run in order: its processes first, and a sentence at the end.
#pragma once

#include <signal.h>

#include <array>

namespace assay::falsify {

/// A run was ended by a signal before it was complete.
struct EndedBySignal {
  int signal = 0;
};

/// While it lives, SIGINT and SIGTERM only leave a note (where they are not ignored, as under nohup).
class CatchSignals {
 public:
  CatchSignals();
  ~CatchSignals();
  CatchSignals(const CatchSignals&) = delete;
  CatchSignals& operator=(const CatchSignals&) = delete;

 private:
  std::array<struct sigaction, 2> before_{};
};

/// The signal that was caught; 0: none.
int caught_signal();

/// Whether signals are caught, and a child that one of them ended shows that the run is to end.
bool ends_run(int wait_status);

/// In a forked process: what is caught in this one ends that one, as ever.
void restore_signals();

}  // namespace assay::falsify
