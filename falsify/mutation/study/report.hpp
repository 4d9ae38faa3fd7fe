// The results of a study as data and as text. All text is made from the document.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "falsify/mutation/study/sample.hpp"

namespace assay::falsify {

inline constexpr std::string_view kAutomaticSchema = "assay-automatic-mutants/1";

/// Makes the document: settings, device, on_processor, generated, invalid, screened_out, totals, operations, kernels,
/// families, obligations, and the mutants themselves; with `matrix` also the mutants that each obligation of an
/// operation kills, and kills alone.
nlohmann::json automatic_report(const Survey& survey, const Sample& sample, std::size_t screened_out,
                                std::vector<nlohmann::json> mutants, nlohmann::json settings, double seconds);

/// True if a mutant survived that is not equivalent as observed, or the right kernel failed.
bool automatic_failed(const nlohmann::json& report);

/// Returns totals in two lines.
std::string automatic_summary(const nlohmann::json& report);

/// Formats the document for a terminal.
std::string automatic_table(const nlohmann::json& report);

/// Writes automatic.json, mutants.html and junit.xml (a suite per kernel, a case per mutant). Throws InputError if a
/// file cannot be written.
void write_automatic(const nlohmann::json& report, const std::filesystem::path& directory);

}  // namespace assay::falsify
