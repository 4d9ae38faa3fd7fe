#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace assay::cli {

ProgressLine::ProgressLine(bool quiet, bool timed)
    : quiet_(quiet), timed_(timed), terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressLine::update(const falsify::PoolStatus& s) {
  if (quiet_) return;
  if (terminal_) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    std::string text = fmt::format("{} of {} kernels, {} cases, {:.0f} s", s.finished, s.kernels, s.cases_done, seconds);
    if (!timed_ && s.cases_done > 0)
      text += fmt::format(", about {:.0f} s left",
                          seconds * static_cast<double>(s.cases_planned - s.cases_done) / static_cast<double>(s.cases_done));
    fmt::print(stderr, "\r\x1b[K{}", text);
    std::fflush(stderr);
  } else if (s.last != nullptr) {
    fmt::print(stderr, "[{}/{}] {}: {}\n", s.finished, s.kernels, (*s.last)["kernel"].get<std::string>(),
               (*s.last)["status"].get<std::string>());
  }
}

void ProgressLine::finish() {
  if (!quiet_ && terminal_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace assay::cli
