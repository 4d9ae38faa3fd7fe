// Reviewed survivors: mutants whose different bits are acceptable, with the reason.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "falsify/mutation/study/mutant.hpp"

namespace assay::falsify {

struct Accepted {
  std::string hash;    ///< of the mutant
  std::string kernel;  ///< id, or a pattern with * and @(a|b) for kernels that share the code
  std::string reason;
};

/// Reads a JSON list of {hash, kernel, reason}, comments allowed. Throws InputError if the file is no such list, or if
/// two entries are equal.
std::vector<Accepted> read_accepted(const std::filesystem::path& file);

/// Throws InputError for an entry whose mutant does not exist: all kernels that it names were surveyed, and none has a
/// mutant with this hash. Call it before a campaign of hours.
void expect_mutants(const std::vector<Accepted>& accepted, const Survey& survey, const std::string& file);

/// Sets survivors of the list to "accepted", with their `reason`.
void accept(std::vector<nlohmann::json>& results, const std::vector<Accepted>& accepted);

/// Throws InputError for an entry that is not needed: all its mutants that were tried were killed. Call it before
/// saving the results.
void expect_needed(const std::vector<nlohmann::json>& results, const std::vector<Accepted>& accepted,
                   const std::string& file);

}  // namespace assay::falsify
