// Progress on standard error: a line that rewrites itself on a terminal; otherwise a line per kernel, and an occasional
// line that shows in a log that the run is alive.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "falsify/engine/pool.hpp"

namespace assay::cli {

/// Expected times of a run; zero: unknown.
struct TimePlan {
  std::chrono::duration<double> whole{0};   ///< expected duration of the run
  std::chrono::duration<double> kernel{0};  ///< longest duration of each kernel
  int jobs = 1;
};

/// Returns the seconds until the end, from the plan or extrapolated from finished work. Empty if nothing is finished
/// yet.
std::optional<double> seconds_left(const falsify::PoolStatus& status, double elapsed, const TimePlan& plan);

/// Formats as "75 s", "12 min" or "2 h 5 min".
std::string duration_text(double seconds);

class ProgressLine {
 public:
  /// Time without output after which a log gets a line.
  static constexpr std::chrono::seconds kHeartbeat{10};

  explicit ProgressLine(bool quiet, const TimePlan& plan = {}, std::string_view noun = "kernels");
  void update(const falsify::PoolStatus& status);
  /// Clears the line on a terminal.
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
