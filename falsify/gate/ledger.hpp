// The error-budget ledger: worst and typical error/bound of every kernel and obligation, as recorded in evidence. It
// shows a change that makes an error ten times worse long before the error exceeds its bound.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::falsify {

/// Factor from which an error counts as worse. Worst-case errors over other cases usually differ by less than 2;
/// reduced precision costs a factor of 2^13 (TF32, float16) or 2^16.
inline constexpr double kWorseFactor = 10;

struct WorseFigure {
  std::string kernel, obligation;
  std::string figure;  ///< "worst", "typical" or "refused"
  double before = 0;   ///< recorded error / bound; for "refused" the share of the cases
  double now = 0;

  /// True if the gate stops until the change is approved: refused calls are not tested.
  bool stops() const { return figure == "refused"; }
};

/// Returns the figures of a kernel's obligations that are now at least `kWorseFactor` times the recorded value
/// (evidence), or nonzero where the recorded value was zero; and shares of refused cases that have grown significantly.
/// `now` is a report or evidence.
std::vector<WorseFigure> grown(const std::string& kernel, const nlohmann::json& before, const nlohmann::json& now);

/// Returns "softmax/cpu/naive  FALSIFY-SM-002: worst error/bound 0.31, was 0.012".
std::string to_string(const WorseFigure& worse);

}  // namespace assay::falsify
