// The error-budget ledger: worst and typical error/bound of every kernel and obligation, as recorded in evidence. A
// change that makes an error ten times worse stands out long before the error passes its bound.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::falsify {

/// From this factor on an error is worse. Errors of a worst case over other cases differ by less than 2 as a rule;
/// reduced precision costs a factor of 2^13 (TF32, float16) or 2^16.
inline constexpr double kWorse = 10;

struct Worse {
  std::string kernel, obligation;
  std::string figure;  ///< "worst", "typical" or "refused"
  double before = 0;   ///< error / bound as recorded; of "refused" the share of the cases
  double now = 0;

  /// The gate stops until it is agreed to: what a kernel refuses, nothing tests.
  bool stops() const { return figure == "refused"; }
};

/// Figures of the obligations of a kernel that were recorded (evidence) and are there now (report or evidence), where
/// what is now is `kWorse` times what was, or was exact and is no longer; and shares of refused cases that chance does not make of
/// what was.
std::vector<Worse> grown(const std::string& kernel, const nlohmann::json& before, const nlohmann::json& now);

/// "softmax/cpu/naive  FALSIFY-SM-002: worst error/bound 0.31, was 0.012"
std::string to_string(const Worse& worse);

}  // namespace assay::falsify
