// What several formats take out of a report in the same way.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify {

/// The text under a key that the document has.
std::string text_of(const nlohmann::json& object, const char* key);

/// An obligation of a kernel, both as they stand in the report.
struct Judged {
  const nlohmann::json& kernel;
  const nlohmann::json& obligation;
};
/// Those with this verdict, in the report's order.
std::vector<Judged> judged(const nlohmann::json& report, std::string_view verdict);

/// Of each falsified kernel the obligation that explains it, in the report's order.
std::vector<Judged> explained(const nlohmann::json& report);
/// "FALSIFY-MM-002, FALSIFY-MM-007": the others that the same kernel fails; empty where there are none.
std::string also_fails(const nlohmann::json& kernel);

/// "c[2, 0]"; empty where no element is meant.
std::string element_of(const nlohmann::json& finding);
/// "a = [0, 1], b = [1]", of the call that failed: of too many values the integers alone, a dozen of a tensor at most.
std::string inputs_of(const nlohmann::json& counterexample);
/// "2 of 3 of the check; call 1 has m=0"; empty where there is one call.
std::string call_of(const nlohmann::json& counterexample);
/// "a [40, 1], c [60, 1] (in elements)" of the tensors that are not dense, and what follows from that; empty where all are dense.
std::string strides_of(const nlohmann::json& kernel, const nlohmann::json& counterexample);
/// Which orders of threads give different results; empty: none is known.
std::string race_of(const nlohmann::json& counterexample);
/// The obligation's claim, or a plainer one where the failure does not contradict the claim itself.
std::string claim_of(const nlohmann::json& obligation);
/// The likely cause: that of crashes, hangs, stray writes and races as such; otherwise the obligation's `if_fails`.
std::string suspect_of(const nlohmann::json& obligation);
/// "assay replay FILE"; empty where no replay file was written.
std::string replay_of(const nlohmann::json& counterexample);
/// Why most of the refused cases were, in one short line; empty where none was or nothing was said.
std::string why_refused(const nlohmann::json& kernel);
/// Why a kernel is thin, refused or unavailable, in one line; first what to do about it.
std::string why_not(const nlohmann::json& kernel);
/// The finding and its case where falsified, else the reason; one line.
std::string what_happened(const nlohmann::json& obligation);

/// JSON has no NaN or infinity; figures that are one become text: "nan", "inf", "-inf".
nlohmann::json number(double x);
/// The figure that number() made this of; a NaN comes back as one of no particular bits.
double number_from(const nlohmann::json& json);

/// "3 kernels: 2 passed, 1 falsified, ...; 120 cases, 34.5k output elements in 1.2 s"
std::string totals_line(const nlohmann::json& report);
/// 12345 is "12.3k".
std::string short_count(double n);
/// Three digits of a number, or what stands in its place ("inf").
std::string figure(const nlohmann::json& x);

}  // namespace assay::falsify
