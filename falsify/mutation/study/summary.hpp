// Summaries of mutants, hand-written and automatic: by operation, by obligation, and as one HTML page.
//
// Both kinds of document have `mutants`, one object each with `op` and `status` (the name of a MutantStatus). A killed
// mutant has `by`, the id of the first obligation, `cases`, and, if every obligation was tried, `matrix`: the ids of
// all obligations that falsify it. A hand-written mutant has `mutant` and `fault`; an automatic one `kernel`, `part`,
// `hash`, `family` and `description`.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify {

/// survived: of a hand-written mutant. survivor: of an automatic mutant whose results differ. accepted: a survivor that
/// a reviewer has explained.
enum class MutantStatus { killed, equivalent, survivor, accepted, survived, unsound, unavailable };
inline constexpr MutantStatus kMutantStatuses[] = {
    MutantStatus::killed,   MutantStatus::equivalent, MutantStatus::survivor,   MutantStatus::accepted,
    MutantStatus::survived, MutantStatus::unsound,    MutantStatus::unavailable};
std::string_view name(MutantStatus status);
/// Returns the status of a mutant's object in a document. Throws InputError for a name that is none of them.
MutantStatus status_of(const nlohmann::json& mutant);

/// Returns the value in the middle, or the mean of the two there; 0 for an empty list.
double median(std::vector<double> values);

/// Counts by the value of `key`: mutants, one count a status, and the number of cases to kill (median_cases,
/// p95_cases).
nlohmann::json counts_by(const std::vector<nlohmann::json>& mutants, const char* key);

/// Counts by operation and obligation: `first` to kill, `kills` at all, kills `alone`. The last two need `matrix`.
nlohmann::json by_obligation(const std::vector<nlohmann::json>& mutants);

/// Formats by_obligation() for a terminal. With the matrix, an obligation that kills none alone is a candidate for
/// removal.
std::string obligations_text(const nlohmann::json& obligations, bool matrix);

/// Returns "cpu/matmul/wrong_tail_row", or kernel, part and hash.
std::string name_of(const nlohmann::json& mutant);
/// Returns the fault in words.
std::string fault_of(const nlohmann::json& mutant);

/// Makes a single HTML page without external files: totals, operations, kernels, obligations, survivors with their
/// differences in words, the kill matrix, mutants that one obligation alone kills, and all mutants.
std::string mutants_page(const nlohmann::json& report, const std::string& summary);

/// Writes mutants.html and junit.xml: a suite per kernel or operation, a case per mutant, which fails if the mutant
/// survives.
void write_mutants(const nlohmann::json& report, const std::string& summary, const std::filesystem::path& directory);

}  // namespace assay::falsify
