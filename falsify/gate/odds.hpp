// How likely the gate is to stop a change that is right: what the record of runs against right kernels shows, and no
// more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::falsify {

/// Campaigns against kernels believed right in the order in which they were recorded, a line of JSON each:
/// {"alarm":false,"cases":1310,"kernel":"...","seed":"1"}. Whoever removes the cause of an alarm adds to its line
/// "fixed": what was wrong, in words.
struct Record {
  std::vector<nlohmann::json> campaigns;

  /// Adds those of a report of `assay falsify` or `assay gate`, but none that is recorded already (kernel and seed).
  /// Gives how many were new. A campaign is an alarm where it falsified or mistrusted its kernel. Throws InputError.
  std::size_t add(const nlohmann::json& report, const std::string& where);
};

/// Throws InputError naming the file and the line.
Record read_record(const std::filesystem::path& path);
std::string record_text(const Record& record);

struct Odds {
  std::int64_t campaigns = 0, cases = 0, alarms = 0;
  std::int64_t fixed = 0;  ///< of the alarms
  std::size_t kernels = 0, seeds = 0;
  std::int64_t counted_campaigns = 0, counted_cases = 0, counted_alarms = 0;  ///< what the limits rest on
  double per_case = 1;                                                        ///< upper limits, each with a confidence of 95%
  double per_gate = 1;
};

/// The limit on the probability that one case raises a false alarm (Clopper and Pearson 1934, one-sided 95%: 1 -
/// 0.05^(1/n) where n cases raised none), and that a gate run of so many cases raises any: 1 - (1 - p)^cases.
///
/// A suite whose fault was removed is another suite: the limits rest on the campaigns recorded behind the last alarm
/// that was fixed, and on every alarm that was not. Until something is recorded behind it, nothing is known: both are 1.
///
/// Assumed: that the recorded kernels are right, so that every alarm was false and no alarm was missed; that cases of
/// other seeds are independent draws from what the gate draws from; and that the gate's cases mix kernels and
/// obligations as the record does. A kernel unlike the recorded ones may do worse.
Odds odds(const Record& record, double gate_cases);

}  // namespace assay::falsify
