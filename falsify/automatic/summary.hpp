// What is said of mutants, hand-written and automatic ones alike: by operation, by obligation, and as one HTML page.
//
// Both kinds of document have `mutants`, one object each with `op`, `status` (the name of a MutantStatus), and for a killed
// one `by`, the id of the obligation that was first, `cases`, and, where every obligation was tried, `matrix`: the ids
// of all that falsify it. A hand-written one has `mutant` and `fault`; an automatic one `kernel`, `part`, `hash`,
// `family` and `description`.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify {

/// survived: of a hand-written mutant; hole: of an automatic one whose results differ; judged: a hole that a person has explained.
enum class MutantStatus { killed, equivalent, hole, judged, survived, unsound, unavailable };
inline constexpr MutantStatus kMutantStatuses[] = {MutantStatus::killed, MutantStatus::equivalent, MutantStatus::hole,       MutantStatus::judged,
                                                   MutantStatus::survived, MutantStatus::unsound,  MutantStatus::unavailable};
std::string_view name(MutantStatus status);
/// That of a mutant's object in a document. Throws InputError for a name that is none of them.
MutantStatus status_of(const nlohmann::json& mutant);

/// By the value of `key`: mutants, one count a status, and the cases that it took to kill (median_cases, p95_cases).
nlohmann::json counts_by(const std::vector<nlohmann::json>& mutants, const char* key);

/// By operation and obligation: `first` to kill, `kills` at all, kills `alone`. The last two need `matrix`.
nlohmann::json by_obligation(const std::vector<nlohmann::json>& mutants);

/// The same for a terminal. With the matrix, an obligation that kills none alone is a candidate for removal.
std::string obligations_text(const nlohmann::json& obligations, bool matrix);

/// "cpu/matmul/wrong_tail_row", or kernel, part and hash.
std::string name_of(const nlohmann::json& mutant);
/// The fault in words.
std::string fault_of(const nlohmann::json& mutant);

/// One HTML page that needs nothing but itself: totals, operations, kernels, obligations, survivors with their
/// differences in words, the kill matrix, mutants that one obligation alone kills, and all mutants.
std::string mutants_page(const nlohmann::json& report, const std::string& summary);

/// Writes mutants.html and junit.xml: a suite a kernel or operation, a case a mutant, which fails where the mutant is
/// missed.
void write_mutants(const nlohmann::json& report, const std::string& summary, const std::filesystem::path& directory);

}  // namespace assay::falsify
