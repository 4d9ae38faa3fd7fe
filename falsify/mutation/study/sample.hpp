// Samples the automatic mutants to run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>

#include "falsify/mutation/study/mutant.hpp"

namespace assay::falsify {

using MutantList = std::vector<std::unique_ptr<AutomaticMutant>>;

struct Sample {
  MutantList mutants;                                           ///< in order of kernel, then as drawn
  std::size_t generated = 0;                                    ///< mutants of the selection, valid or not
  std::size_t invalid = 0;                                      ///< among those examined while drawing
  std::map<std::string, std::array<std::size_t, 2>> by_kernel;  ///< generated, invalid
};

/// Draws `count` valid mutants, spread evenly over the kernels, each mutant as likely as any other of its kernel; the
/// same for the same seed in every run. 0: all of them. With `only`, omits mutants whose hash is known to differ before
/// they are made.
Sample draw_mutants(const Survey& survey, std::size_t count, std::uint64_t seed, std::string_view only = {});

/// Returns the hashes of the mutants whose calls all ended in the run of this report. Throws InputError if `report` is
/// not from `assay mutants --automatic`.
std::set<std::string> ended_in(const nlohmann::json& report, const std::string& file);

/// Removes mutants whose hash is not in the list; returns the number removed.
/// For GPUs, which a mutant that never ends blocks until the driver resets them (study.hpp).
std::size_t screen(MutantList& mutants, const std::set<std::string>& ended);

}  // namespace assay::falsify
