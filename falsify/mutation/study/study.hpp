// Study of an automatic mutant. The mutant is tried like any kernel for a few rounds, until an obligation falsifies it.
// A mutant that survives is compared with its original bit by bit on many more inputs; the obligations are tried on
// cases with different bits, and finally the rest of the campaign is run.
//
// A worker process serves several mutants of a kernel, since starting a device costs more than most mutants. A mutant
// may have damaged the process, so that a failure counts only if the right kernel then passes the same case in the same
// process; otherwise both are repeated in fresh processes.
//
// A mutant that never ends is killed with its process at the worker's time limit for a call. On lavapipe most endless
// loops end by themselves, since it silently leaves every loop after 65,535 iterations. On a GPU the process dies, but
// the device may stay busy until the driver resets it, and other work suffers: hence screen(), unless mutants end
// themselves (Survey::ends_by_itself).
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>

#include "falsify/engine/pool.hpp"
#include "falsify/mutation/study/sample.hpp"

namespace assay::falsify {

struct StudyOptions {
  int cases = 15;           ///< of each obligation before a mutant counts as surviving
  int attack_cases = 2000;  ///< cases on which a survivor is compared with the original
  int differing = 60;  ///< cases with different bits on which obligations are tried, before it counts as a survivor
  std::uint64_t seed = 1;
  std::chrono::milliseconds limit{5000};  ///< a call that takes longer is a hang
  bool matrix = false;                    ///< try every obligation on killed mutants
  int batch = 16;                         ///< at most this many mutants of one kernel share a driver and a worker
};

/// Returns one object per mutant: kernel, op, part, family, held_out, description, hash, seconds, `ended` (no call
/// hung, crashed or failed) and `status`:
///   killed      `by` an obligation at its case number `cases`, with `kind`, `finding` and `says`;
///               `phase` is "campaign" or "attack"; `matrix` lists all obligations that falsify it, if requested
///   equivalent  as observed: the same bits as the original on `compared` cases
///   survivor    other bits on the case `says`, and no obligation fails; `differs` on this many cases of `compared`;
///               its error there is `worst` of the bound, and its original's `worst_of_original`
///   accepted    a survivor in the list of accepted ones (accepted.hpp): `why`
///   unsound     the right kernel fails the case that the mutant fails; or, rebuilt, fails any of the first cases
///   unavailable, refused
nlohmann::json study(const AutomaticMutant& mutant, const StudyOptions& options, Worker& worker);

/// Called several times a second with the number of finished mutants.
using StudyProgress = std::function<void(std::size_t done)>;
/// Studies all mutants in parallel, by kernel and hash. If a signal was caught (CatchSignals), returns the finished
/// ones, with the signal in *ended_by.
std::vector<nlohmann::json> run_study(const MutantList& mutants, const StudyOptions& options, int jobs,
                                      const StudyProgress& progress, int* ended_by = nullptr);

}  // namespace assay::falsify
