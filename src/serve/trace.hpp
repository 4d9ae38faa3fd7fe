// Recording the spans of a process.
#pragma once

#include "runtime/span.hpp"

namespace assay::trace {

/// Sends the spans of the process to `sink` until the scope ends, then restores the previous sink. The destructor waits
/// for spans open on other threads and must not run inside a span. While a sink is set, kernel runs wait for their
/// device, so that a span measures the work and not its submission.
class Recording {
 public:
  explicit Recording(Sink& sink);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Sink* previous_;
};

}  // namespace assay::trace
