// Probability that the gate stops a correct change, estimated from recorded runs against correct kernels only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::falsify {

/// Campaigns against kernels believed correct, in recording order, a line of JSON each:
/// {"alarm":false,"cases":1310,"kernel":"...","seed":"1"}. After removing the cause of an alarm, add "fixed" to its
/// line: the cause, in words.
struct Record {
  std::vector<nlohmann::json> campaigns;

  /// Adds the campaigns of a report of `assay falsify` or `assay gate` that are not yet recorded (by kernel and seed)
  /// and returns their number. A campaign is an alarm if it falsified or mistrusted its kernel. Throws InputError.
  std::size_t add(const nlohmann::json& report, const std::string& where);
};

/// Reads a record. Throws InputError naming the file and the line.
Record read_record(const std::filesystem::path& path);
std::string record_text(const Record& record);

struct FalseAlarms {
  std::int64_t campaigns = 0, cases = 0, alarms = 0;
  std::int64_t fixed = 0;  ///< of the alarms
  std::size_t kernels = 0, seeds = 0;
  std::int64_t counted_campaigns = 0, counted_cases = 0, counted_alarms = 0;  ///< basis of the limits
  /// upper limits, each with a confidence of 95%
  double per_case = 1;
  double per_gate = 1;
};

/// Limits on the probability that one case raises a false alarm (Clopper and Pearson 1934, one-sided 95%: 1 -
/// 0.05^(1/n) if n cases raised none), and that a gate run raises any: 1 - (1 - p)^cases.
///
/// Fixing a fault of the suite makes another suite: the limits use the campaigns recorded after the last fixed alarm,
/// and every alarm that was not fixed. If nothing is recorded after it, both limits are 1.
///
/// Assumptions: the recorded kernels are correct, so that every alarm was false and no alarm was missed; cases of other
/// seeds are independent draws from the gate's distribution; the gate's cases mix kernels and obligations as the record
/// does. A kernel unlike the recorded ones may do worse.
FalseAlarms false_alarms(const Record& record, double gate_cases);

}  // namespace assay::falsify
