#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace assay::cli {

std::optional<double> seconds_left(const falsify::PoolStatus& status, double elapsed, const TimePlan& plan) {
  if (plan.whole.count() > 0) return std::max(0.0, plan.whole.count() - elapsed);
  const double open = status.kernels - status.finished;
  std::optional<double> left;
  if (status.work_done > 0) left = elapsed * std::max(0.0, status.kernels - status.work_done) / status.work_done;
  if (plan.kernel.count() > 0) {
    const double most = std::ceil(open / std::max(plan.jobs, 1)) * plan.kernel.count();
    left = std::min(left.value_or(most), most);
  }
  return left;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::ceil(seconds));
  if (whole < 120) return fmt::format("{} s", whole);
  const long minutes = (whole + 59) / 60;
  return minutes < 120 ? fmt::format("{} min", minutes) : fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

ProgressLine::ProgressLine(bool quiet, const TimePlan& plan, std::string_view noun)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0), plan_(plan), noun_(noun) {}

std::string ProgressLine::text(const falsify::PoolStatus& s) const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
  std::string text = fmt::format("{} of {} {}", s.finished, s.kernels, noun_);
  if (s.cases_done > 0) text += fmt::format(", {} cases", s.cases_done);
  text += fmt::format(", {}", duration_text(elapsed));
  if (const auto left = seconds_left(s, elapsed, plan_)) text += fmt::format(", about {} left", duration_text(*left));
  return text;
}

void ProgressLine::update(const falsify::PoolStatus& s) {
  if (quiet_) return;
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", text(s));
    std::fflush(stderr);
  } else if (s.last != nullptr) {
    fmt::print(stderr, "[{}/{}] {}: {}\n", s.finished, s.kernels, (*s.last)["kernel"].get<std::string>(),
               (*s.last)["status"].get<std::string>());
    last_ = Clock::now();
  } else if (Clock::now() - last_ >= kHeartbeat) {
    fmt::print(stderr, "{}\n", text(s));
    last_ = Clock::now();
  }
}

void ProgressLine::finish() {
  if (!quiet_ && terminal_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace assay::cli
