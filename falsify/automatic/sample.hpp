// Which of the many automatic mutants are run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>

#include "falsify/automatic/mutant.hpp"

namespace assay::falsify {

using MutantList = std::vector<std::unique_ptr<AutomaticMutant>>;

struct Sample {
  MutantList mutants;           ///< in order of kernel, then as drawn
  std::size_t generated = 0;    ///< mutants of the selection, valid or not
  std::size_t invalid = 0;      ///< of those looked at while drawing
  std::map<std::string, std::array<std::size_t, 2>> by_kernel;  ///< generated, invalid
};

/// `count` valid mutants, as many of each kernel while it has as many, each as likely as any other of its kernel; the same for
/// the same seed in every run. 0: all of them. With `only`, those of another hash are left out where that is known
/// before they are made.
Sample draw_mutants(const Survey& survey, std::size_t count, std::uint64_t seed, std::string_view only = {});

/// Hashes of the mutants that ended, on every call, in a run whose report this is. Throws InputError where `report` is
/// not one of `assay mutants --automatic`.
std::set<std::string> ended_in(const nlohmann::json& report, const std::string& file);

/// Leaves those whose hash is in the list; gives how many were left out.
/// For GPUs: a mutant that never ends costs the process its device, and everyone the GPU until the driver resets it. lavapipe leaves every
/// loop after 65,535 iterations without a word, so such a loop passes this screen and meets the GPU's limits.
std::size_t screen(MutantList& mutants, const std::set<std::string>& ended);

}  // namespace assay::falsify
