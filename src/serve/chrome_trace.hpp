// A sink that keeps spans and writes them in the Trace Event Format, which chrome://tracing and Perfetto open.
#pragma once

#include <iosfwd>
#include <mutex>
#include <vector>

#include "serve/trace.hpp"

namespace assay::trace {

class ChromeTrace final : public Sink {
 public:
  void ended(const Span& span) noexcept override;

  /// Writes all spans so far as one JSON object of complete events ("ph": "X"), times in microseconds.
  void write(std::ostream& out) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
};

}  // namespace assay::trace
