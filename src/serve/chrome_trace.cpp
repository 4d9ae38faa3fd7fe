#include "serve/chrome_trace.hpp"

#include <cstdio>
#include <ostream>

namespace assay::trace {
namespace {

/// Returns a JSON string with its quotes.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
      continue;
    }
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
    out += escape;
  }
  return out + '"';
}

std::string microseconds(std::int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000), static_cast<long long>(ns % 1000));
  return text;
}

}  // namespace

void ChromeTrace::ended(const Span& span) noexcept {
  const std::scoped_lock lock(mutex_);
  spans_.push_back(span);
}

void ChromeTrace::write(std::ostream& out) const {
  const std::scoped_lock lock(mutex_);
  out << "{\"traceEvents\":[";
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const Span& span = spans_[i];
    out << (i == 0 ? "\n" : ",\n") << R"({"ph":"X","pid":1,"tid":)" << span.thread << ",\"name\":" << quoted(span.name)
        << ",\"ts\":" << microseconds(span.begin_ns) << ",\"dur\":" << microseconds(span.end_ns - span.begin_ns)
        << ",\"args\":{";
    for (std::size_t a = 0; a < span.attributes.size(); ++a)
      out << (a == 0 ? "" : ",") << quoted(span.attributes[a].key) << ":" << quoted(span.attributes[a].value);
    out << "}}";
  }
  out << "\n]}\n";
}

}  // namespace assay::trace
