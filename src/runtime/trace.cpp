#include "runtime/trace.hpp"

#include <chrono>
#include <thread>

namespace assay::trace {

std::atomic<Sink*> current_sink{nullptr};

namespace {

/// Number of spans that hold a sink. The end of a Recording first removes its sink and then waits for these spans. Both
/// sides use sequentially consistent operations, so a span missed by this count sees that the sink is gone.
std::atomic<int> open_spans{0};
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

Recording::Recording(Sink& sink) : previous_(current_sink.exchange(&sink)) {}

Recording::~Recording() {
  current_sink.store(previous_);
  while (open_spans.load() > 0) std::this_thread::yield();
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
