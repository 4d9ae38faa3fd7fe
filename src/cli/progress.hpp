// Progress on standard error: a line that rewrites itself on a terminal, a line per kernel elsewhere.
#pragma once

#include <chrono>

#include "falsify/engine/pool.hpp"

namespace assay::cli {

class ProgressLine {
 public:
  /// `timed`: the campaign ends by time, so the number of cases has no end to show.
  ProgressLine(bool quiet, bool timed);
  void update(const falsify::PoolStatus& status);
  /// Leaves the terminal with an empty line.
  void finish();

 private:
  bool quiet_, timed_, terminal_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace assay::cli
