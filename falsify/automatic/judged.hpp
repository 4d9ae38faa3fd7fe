// Holes that somebody has looked at and found to be none: why no obligation has to object to these other bits.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "falsify/automatic/mutant.hpp"

namespace assay::falsify {

struct Judgement {
  std::string hash;    ///< of the mutant
  std::string kernel;  ///< id, or a pattern with * for those that share the code
  std::string reason;
};

/// A JSON list of {hash, kernel, reason}, comments allowed. Throws InputError where it is none, or where two entries say
/// the same.
std::vector<Judgement> read_judgements(const std::filesystem::path& file);

/// Makes holes of the list "judged", with their `reason`. Throws InputError for an entry that is not needed: all kernels
/// that it names were surveyed and none has such a mutant, or all that were tried were killed.
void judge(std::vector<nlohmann::json>& results, const std::vector<Judgement>& judgements, const Survey& survey,
           const std::string& file);

}  // namespace assay::falsify
