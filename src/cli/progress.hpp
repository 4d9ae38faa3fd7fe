// Progress on standard error: a line that rewrites itself on a terminal; elsewhere a line per kernel, and one now and then so
// that a log shows that the run is alive.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "falsify/engine/pool.hpp"

namespace assay::cli {

/// What is known beforehand of the time that a run takes; zero: nothing.
struct TimePlan {
  std::chrono::duration<double> whole{0};   ///< the run ends about then
  std::chrono::duration<double> kernel{0};  ///< and each kernel after this, at the latest
  int jobs = 1;
};

/// Seconds until the end: by the plan, or as long as what was done so far lets expect. Empty where nothing is done yet.
std::optional<double> seconds_left(const falsify::PoolStatus& status, double elapsed, const TimePlan& plan);

/// "75 s", "12 min", "2 h 5 min".
std::string duration_text(double seconds);

class ProgressLine {
 public:
  /// Silence after which a log gets a line.
  static constexpr std::chrono::seconds kAlive{10};

  explicit ProgressLine(bool quiet, const TimePlan& plan = {}, std::string_view noun = "kernels");
  void update(const falsify::PoolStatus& status);
  /// Leaves the terminal with an empty line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string text(const falsify::PoolStatus& status) const;

  bool quiet_, terminal_;
  TimePlan plan_;
  std::string_view noun_;
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
};

}  // namespace assay::cli
