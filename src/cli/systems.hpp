// Systems on the command line: the parts of `falsify`, `replay`, `gradcheck`, `mutants`, `explain` and `list` that are
// theirs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "falsify/engine/pool.hpp"
#include "falsify/program/system.hpp"

namespace assay::cli {

/// Returns whether the names are those of systems. Throws InputError if some are and others are not.
bool name_systems(const std::vector<std::string>& names);

/// Returns each system on each back end, or on one, or with `kernel` for its operation's steps. Throws InputError if a
/// system has no such step.
std::vector<falsify::SystemKernel> kernels_of_systems(const std::vector<std::string>& systems,
                                                      const std::string& backend, const std::string& kernel);
/// Returns the dims of every case for CampaignOptions. Throws InputError if they are not dims of the single system.
std::vector<Index> dims_of_system(const std::vector<std::string>& systems, const std::string& dims, std::uint64_t seed);

/// Returns the kernels of a report. With a journal, those finished there are not run again, and each is recorded. Throws
/// EndedBySignal as run_pool() does. Each campaign ends once it has compared `elements` elements, if that is not 0.
std::vector<nlohmann::json> falsify_systems(const std::vector<falsify::SystemKernel>& chosen,
                                            const falsify::CampaignOptions& options, int jobs,
                                            const falsify::PoolProgress& progress = {},
                                            falsify::Journal* journal = nullptr, std::int64_t elements = 0);

/// Runs a replay file again if it is a system's: returns the exit code.
std::optional<int> replay_system(const std::string& file, bool as_json);

/// Returns a gradient of the report of `assay gradcheck` for every leaf of every system.
std::vector<nlohmann::json> gradcheck_system(const std::string& system, int cases, std::uint64_t seed);

/// Returns what became of each mutant: of named faults, or with `automatic` of every step, operand and constant.
std::vector<nlohmann::json> mutants_of_systems(const std::vector<std::string>& systems, bool automatic, int jobs);

/// Returns a row for each rule: how many of the named faults of a training step it lets through.
nlohmann::json policies_of_step(int jobs);

nlohmann::json explain_system(const std::string& system);
/// Formats what explain_system() returns.
std::string explanation_text(const nlohmann::json& explained);

}  // namespace assay::cli
