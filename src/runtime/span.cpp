#include "runtime/span.hpp"

#include <chrono>

namespace assay::trace {

std::atomic<Sink*> current_sink{nullptr};
/// The end of a Recording first removes its sink and then waits for them: both sides use
/// sequentially consistent operations, so that a span which this count misses sees that the sink is gone.
std::atomic<int> open_spans{0};

namespace {

std::atomic<std::uint64_t> threads{0};
thread_local int depth = 0;

std::uint64_t this_thread() {
  thread_local const std::uint64_t number = ++threads;
  return number;
}

std::int64_t now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace

std::string_view Span::attribute(std::string_view key) const {
  for (const Attribute& a : attributes)
    if (a.key == key) return a.value;
  return {};
}

bool Scope::begin(std::string_view name) {
  ++open_spans;
  sink_ = current_sink.load();
  if (sink_ == nullptr) {
    --open_spans;
    return false;
  }
  span_ = std::make_unique<Span>();
  span_->name = name;
  span_->thread = this_thread();
  span_->depth = depth++;
  span_->begin_ns = now();
  return true;
}

void Scope::end() noexcept {
  span_->end_ns = now();
  --depth;
  sink_->ended(*span_);
  --open_spans;
}

}  // namespace assay::trace
