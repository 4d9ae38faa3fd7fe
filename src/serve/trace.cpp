#include "serve/trace.hpp"

#include <thread>

namespace assay::trace {

Recording::Recording(Sink& sink) : previous_(current_sink.exchange(&sink)) {}

Recording::~Recording() {
  current_sink.store(previous_);
  while (open_spans.load() > 0) std::this_thread::yield();
}

}  // namespace assay::trace
