// How a run ends: its results on standard output, in files, and where GitHub shows them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.hpp"

namespace assay::cli {

/// The exit code of `assay falsify` with this report: what was asked for by name, and is not here or refuses its cases, is kUnavailable.
Exit exit_code(const nlohmann::json& report);

/// Prints the report (as JSON, or as a table) and writes its files to `directory`; replay files alone, and to assay-replays,
/// where that is empty; then announce(). Throws InputError where something could not be written, after all else has been.
void publish(nlohmann::json& report, const std::string& directory, bool as_json);

/// Where the environment says GITHUB_ACTIONS=true: annotations to standard error, which leaves standard output as it is, and
/// the summary of the step. Throws InputError where that could not be written.
void announce(const nlohmann::json& report);

}  // namespace assay::cli
