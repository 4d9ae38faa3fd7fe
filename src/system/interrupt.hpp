// SIGINT and SIGTERM as a request to end a run cleanly: end its processes first, then report.
#pragma once

#include <signal.h>

#include <array>

namespace assay {

/// A signal ended the run before it was complete.
struct EndedBySignal {
  int signal = 0;
};

/// While in scope, SIGINT and SIGTERM are only recorded (unless ignored, as under nohup).
class CatchSignals {
 public:
  CatchSignals();
  ~CatchSignals();
  CatchSignals(const CatchSignals&) = delete;
  CatchSignals& operator=(const CatchSignals&) = delete;

 private:
  std::array<struct sigaction, 2> before_{};
};

/// Returns the caught signal; 0 if none.
int caught_signal();

/// True if signals are being caught and the child was ended by SIGINT or SIGTERM, so that the run should end.
bool ends_run(int wait_status);

/// In a forked child: restores default SIGINT and SIGTERM handling.
void restore_signals();

}  // namespace assay
