// Recording the spans of a process.
#pragma once

#include "runtime/span.hpp"

namespace assay::trace {

/// Spans of the process go to `sink` until the scope ends; then the sink that was set before has them again. The end
/// waits for spans open on other threads; it must not lie inside a span. While a sink is set, kernel runs wait for
/// their device, so that a span is as long as the work and not as its submission.
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
