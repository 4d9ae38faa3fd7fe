// The table of `assay mutants --policies`: the mutants that each policy kills, and the correct kernels that it rejects.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "falsify/policies/policy.hpp"

namespace assay::falsify::policies {

/// Returns the column that counts a mutant of this class (falsify/mutation/faults.py) or of this family of automatic
/// ones. "special" covers NaN, Inf and the ends of the range, "state" stale memory and unwritten outputs.
std::string_view column_of(std::string_view op, std::string_view fault_class);

/// Judges one kernel under every policy: kernel, op, mutant, fault, class (its column), and under `policies` by name:
/// covered, rejected, cases, refused, seconds, unavailable. `fault` is empty for a correct kernel.
nlohmann::json judge_all(const Kernel& kernel, std::string_view fault, std::string_view fault_class,
                         const JudgeOptions& options);

/// Totals the documents of judge_all(), by policy: operations covered, mutants judged, killed, missed by class, correct
/// kernels judged and rejected, milliseconds per case. `beyond_ours`: mutants that a policy kills and ours does not.
nlohmann::json policy_report(std::vector<nlohmann::json> kernels, const nlohmann::json& settings);

/// Formats the report for people, the same for the same seed except for the last column.
std::string policy_table(const nlohmann::json& report);

}  // namespace assay::falsify::policies
