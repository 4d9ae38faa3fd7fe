// Fields of a report that several formats share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify {

/// Returns the text under a key that the document has.
std::string text_of(const nlohmann::json& object, const char* key);

/// An obligation and its kernel, as in the report.
struct Judged {
  const nlohmann::json& kernel;
  const nlohmann::json& obligation;
};
/// Returns the obligations with this verdict, in the report's order.
std::vector<Judged> judged(const nlohmann::json& report, std::string_view verdict);

/// Returns the explaining obligation of each falsified kernel, in the report's order.
std::vector<Judged> explained(const nlohmann::json& report);
/// Returns "FALSIFY-MM-002, FALSIFY-MM-007": the kernel's other failed obligations; empty if there are none.
std::string other_failed_obligations(const nlohmann::json& kernel);

/// Returns "c[2, 0]"; empty if no element is concerned.
std::string element_of(const nlohmann::json& finding);
/// Returns "a = [0, 1], b = [1]", the inputs of the failed call: if there are too many values the integers only, at
/// most a dozen per tensor.
std::string inputs_of(const nlohmann::json& counterexample);
/// Returns "2 of 3 of the check; call 1 has m=0"; empty if there is only one call.
std::string call_of(const nlohmann::json& counterexample);
/// Returns "a [40, 1], c [60, 1] (in elements)" for the tensors that are not dense, and the conclusion from it; empty
/// if all are dense.
std::string strides_of(const nlohmann::json& kernel, const nlohmann::json& counterexample);
/// Returns the thread orders that give different results; empty if none are known.
std::string race_of(const nlohmann::json& counterexample);
/// Returns the obligation's claim, or a simpler one if the failure does not contradict the claim itself.
std::string claim_of(const nlohmann::json& obligation);
/// Returns the likely cause: one of its own for a call that fails, crashes, hangs, races or writes elsewhere; otherwise the
/// obligation's `if_fails`.
std::string suspect_of(const nlohmann::json& obligation);
/// Returns "assay replay FILE", with the program as it was started (set_program); empty if no replay file was written.
std::string replay_of(const nlohmann::json& counterexample);
/// Returns the most frequent reason for refusals, in one short line; empty if there is none.
std::string refusal_text(const nlohmann::json& kernel);
/// Returns the reason why a kernel is thin, refused or unavailable, in one line that starts with the remedy.
std::string shortfall_text(const nlohmann::json& kernel);
/// Returns the finding and its case if falsified, else the reason; one line.
std::string result_text(const nlohmann::json& obligation);

/// Makes a JSON value of a number. JSON has no NaN or infinity, so these become text: "nan", "inf", "-inf".
nlohmann::json number(double x);
/// Inverse of number(); a NaN loses its bits.
double number_from(const nlohmann::json& json);

/// Returns "3 kernels: 2 passed, 1 falsified, ...; 120 cases, 34.5k output elements in 1.2 s".
std::string totals_line(const nlohmann::json& report);
/// Returns "12.3k" for 12345.
std::string short_count(double n);
/// Returns three digits of a number, or its text ("inf").
std::string figure(const nlohmann::json& x);

}  // namespace assay::falsify
