// Spans of the library's work: `alloc`, `transfer`, and each kernel run under its operation's name. Nothing is recorded
// until a caller sets a sink (serve/trace.hpp). Without a sink a span costs a relaxed atomic load.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace assay::trace {

struct Attribute {
  std::string_view key;  ///< "shape", "bytes", "backend", "kernel", "direction"
  std::string value;
};

/// One timed activity. Spans of a thread nest: `depth` counts the enclosing spans.
struct Span {
  std::string name;
  std::vector<Attribute> attributes;
  std::uint64_t thread = 0;  ///< numbered from 1 in the order of their first spans
  int depth = 0;
  std::int64_t begin_ns = 0;  ///< on the steady clock
  std::int64_t end_ns = 0;

  /// Returns the value of an attribute; empty if there is none with that key.
  std::string_view attribute(std::string_view key) const;
};

/// Receives spans as they end, inner ones first, on the thread they ran on, from several threads at once. Throws
/// nothing.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void ended(const Span& span) noexcept = 0;
};

/// The current sink; null for none.
extern std::atomic<Sink*> current_sink;
/// Spans that hold a sink.
extern std::atomic<int> open_spans;

/// A span from here to the end of the scope. `describe(Span&)` adds attributes; it is called only if a sink is set.
class Scope {
 public:
  template <class Describe>
  Scope(std::string_view name, const Describe& describe) {
    if (current_sink.load(std::memory_order_relaxed) == nullptr) return;
    if (begin(name)) describe(*span_);
  }
  ~Scope() {
    if (span_) end();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  bool recording() const { return span_ != nullptr; }

 private:
  bool begin(std::string_view name);
  void end() noexcept;

  Sink* sink_ = nullptr;
  std::unique_ptr<Span> span_;
};

}  // namespace assay::trace
