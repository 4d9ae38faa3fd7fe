// Holes that somebody has looked at and found to be none: why no obligation has to object to these other bits.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "falsify/mutation/study/mutant.hpp"

namespace assay::falsify {

struct Judgement {
  std::string hash;    ///< of the mutant
  std::string kernel;  ///< id, or a pattern with * and @(a|b) for those that share the code
  std::string reason;
};

/// A JSON list of {hash, kernel, reason}, comments allowed. Throws InputError where it is none, or where two entries say
/// the same.
std::vector<Judgement> read_judgements(const std::filesystem::path& file);

/// Throws InputError for an entry whose mutant does not exist: all kernels that it names were surveyed, and none has one with this hash.
/// To be asked before a campaign of hours.
void expect_mutants(const std::vector<Judgement>& judgements, const Survey& survey, const std::string& file);

/// Makes holes of the list "judged", with their `reason`.
void judge(std::vector<nlohmann::json>& results, const std::vector<Judgement>& judgements);

/// Throws InputError for an entry that is not needed: all its mutants that were tried were killed. To be asked when the results are saved.
void expect_needed(const std::vector<nlohmann::json>& results, const std::vector<Judgement>& judgements, const std::string& file);

}  // namespace assay::falsify
