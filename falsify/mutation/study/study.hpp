// What becomes of an automatic mutant. It is tried like any kernel for a few rounds, until an obligation falsifies it. One
// that survives is run beside its original on many more inputs and compared bit by bit: where bits differ the obligations
// are tried on that case, and at last the rest of the campaign is run.
//
// A worker process serves several mutants of a kernel: starting a device costs more than most mutants. A mutant may have
// damaged it, so that a failure counts only if the right kernel then passes the same case in the same process; otherwise
// both are tried again in fresh ones.
//
// What ends a mutant that never ends: the worker's time limit for a call, after which the process is killed. On lavapipe
// most such loops end by themselves, since it leaves every loop after 65,535 turns without a word. On a GPU the process
// dies, the device may stay busy until the driver resets it, and work of others suffers: hence screen(), unless mutants end
// themselves (Survey::ends_by_itself).
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>

#include "falsify/engine/pool.hpp"
#include "falsify/mutation/study/sample.hpp"

namespace assay::falsify {

struct StudyOptions {
  int cases = 15;          ///< of each obligation before a mutant counts as surviving
  int attack_cases = 2000; ///< compared with the original for a survivor
  int differing = 60;      ///< cases on which the two differ that obligations are tried on, before it counts as a hole
  std::uint64_t seed = 1;
  std::chrono::milliseconds limit{5000};  ///< a call that takes longer is a hang
  bool matrix = false;     ///< try every obligation on killed mutants
  int batch = 16;          ///< mutants of one kernel that share a driver and a worker, at most
};

/// One object a mutant: kernel, op, part, family, held_out, description, hash, seconds, `ended` (no call hung, crashed
/// or failed) and `status`:
///   killed      `by` an obligation at its case number `cases`, with `kind`, `finding` and `says`; `phase` is "campaign"
///               or "attack"; `matrix` lists the ids of all that falsify it, if asked for
///   equivalent  as observed: the same bits as the original on `compared` cases
///   hole        other bits on the case `says`, and no obligation objects; `differs` in how many cases of `compared`;
///               there its error is `worst` of the bound and its original's `worst_of_original`
///   judged      a hole of the list of those that need no obligation (judged.hpp): `why`
///   unsound     the right kernel fails the case that fails the mutant; or, built anew by the source, any of the first ones
///   unavailable, refused
nlohmann::json study(const AutomaticMutant& mutant, const StudyOptions& options, Worker& worker);

/// Called several times a second with the mutants done so far.
using StudyProgress = std::function<void(std::size_t done)>;
/// All of them, side by side, by kernel and hash. Where a signal was caught (CatchSignals): those done by then, and the signal in
/// *ended_by.
std::vector<nlohmann::json> run_study(const MutantList& mutants, const StudyOptions& options, int jobs,
                                      const StudyProgress& progress, int* ended_by = nullptr);

}  // namespace assay::falsify
