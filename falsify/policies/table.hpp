// The table of `assay mutants --policies`: which mutants each policy kills, and which right kernels it rejects.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "falsify/policies/policy.hpp"

namespace assay::falsify::policies {

/// The column that counts a mutant of this class (falsify/mutation/faults.py) or of this family of automatic ones. "special" are NaN, Inf
/// and the ends of the range, "state" is what memory held and what is left unwritten.
std::string_view column_of(std::string_view op, std::string_view fault_class);

/// One kernel under every policy: kernel, op, mutant, fault, class (its column), and under `policies` by name: covered, rejected,
/// cases, refused, seconds, unavailable. `fault` is empty for a right kernel.
nlohmann::json judge_all(const Kernel& kernel, std::string_view fault, std::string_view fault_class, const JudgeOptions& options);

/// Totals of the documents that judge_all() gave, by policy: operations covered, mutants judged, killed, missed by
/// class, right kernels judged and rejected, milliseconds per case. `beyond_ours`: mutants that a policy kills and ours
/// does not.
nlohmann::json policy_report(std::vector<nlohmann::json> kernels, const nlohmann::json& settings);

/// The report as people read it, the same for the same seed but for the last column.
std::string policy_table(const nlohmann::json& report);

}  // namespace assay::falsify::policies
