// The end of a run: results on standard output, in files, and on GitHub.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.hpp"

namespace assay::cli {

/// Returns the exit code of `assay falsify` for this report. Kernels requested by name that are not available or refuse
/// their cases give kUnavailable.
Exit exit_code(const nlohmann::json& report);

/// Prints the report (as JSON, or as a table) and writes its files to `directory`. If `directory` is empty, writes only
/// replay files, to assay-replays. Then calls announce(). Throws InputError after writing everything else if an output
/// could not be written.
void publish(nlohmann::json& report, const std::string& directory, bool as_json);

/// Writes replay files to assay-replays. Nobody asked for them, so that a folder that cannot be written is a warning.
void write_replays_here(nlohmann::json& report);

/// If the environment has GITHUB_ACTIONS=true, writes annotations to standard error, separate from standard output, and
/// the summary of the step. Throws InputError if the summary could not be written.
void announce(const nlohmann::json& report);

}  // namespace assay::cli
