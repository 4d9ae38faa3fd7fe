// A campaign against one kernel: every obligation of its operation on many cases.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "falsify/engine/depth.hpp"
#include "falsify/engine/obligation.hpp"
#include "falsify/engine/shrink.hpp"
#include "falsify/engine/worker.hpp"

namespace assay::falsify {

struct CampaignOptions {
  int cases = kDefaultCases;                     ///< of each obligation
  std::chrono::milliseconds time{0};             ///< stop then, if all were tried or one failed; 0: no limit
  bool to_floor = false;                         ///< but not before the floor (depth.hpp) is reached, or one failed
  std::uint64_t seed = 1;
  std::chrono::milliseconds limit{10'000};       ///< a case that takes longer is a hang
  std::chrono::milliseconds shrink_budget{10'000};
  bool stop_at_first = false;                    ///< end the campaign at the first falsified obligation
  bool shrink = true;
  std::string only;                              ///< one obligation id; empty: all
  Index largest = 0;                             ///< dims of `by: large` cases, as DrawSpec::largest
  std::vector<Index> dims{};                     ///< of every case: an extent for each dim, kDrawnSmall for one drawn small; empty: any
};

enum class Verdict {
  passed,
  falsified,
  mistrusted,      ///< nothing was compared, or hardly anything but zeros: not evidence
  not_applicable,  ///< with the reason
  not_run,         ///< the campaign ended before its first case
  refused,         ///< the kernel refused every case, or left fewer than it takes to draw each strategy and placement once
  unavailable,     ///< its device is not here
};
std::string_view name(Verdict verdict);

/// Two orders of threads under which the same call gives different results (Case::order). The same order twice: two runs that differ,
/// each in a process of its own.
struct Race {
  std::uint64_t order = 0, other = 0;
  std::string other_gives;  ///< "passes", or what is wrong there
};

struct Counterexample {
  Case first;               ///< as drawn
  Case smallest;            ///< as shrunk, where it explains the kernel's failures (explanation); with what it takes to fail again
  Finding finding;          ///< of the smallest
  std::optional<ErrorMap> first_errors{};  ///< of the first, as Finding::errors
  std::string reproduction; ///< "in a fresh process", "after a call with other dims", or how often it failed
  int number = 0;           ///< cases run by the campaign up to and including the failing one
  int shrink_tried = 0;
  double shrink_seconds = 0;
  bool shrink_complete = true;
  bool fails_again = false;  ///< `smallest` does in a fresh process
  bool of_bits = false;      ///< calls that must agree bit for bit do not: what the check itself says, before a call is blamed
  std::optional<Race> race{};
};

struct ObligationResult {
  const ObligationInfo* info = nullptr;
  Verdict verdict = Verdict::passed;
  std::string reason;       ///< why not applicable, not run, refused, mistrusted or unavailable
  std::string inapplicable{}; ///< why its last case that did not apply did not
  int cases = 0;            ///< run to the end
  int refused = 0;          ///< of them, refused by the kernel
  std::int64_t elements = 0;
  std::int64_t nonzero = 0; ///< of them, those whose expected value is not zero
  double evidence = 0;      ///< expected values for which zero would be wrong
  int compared = 0;         ///< cases in which at least one element was compared
  double worst = 0;         ///< largest error / bound
  double typical = 0;       ///< median over the passed cases of the largest error / bound in each
  double seconds = 0;
  Coverage tried{}, accepted{};  ///< by all cases, and by those that the kernel did not refuse
  std::optional<Counterexample> counterexample;
};

/// What a kernel as a whole lacks to pass, where each of its obligations may have.
struct Shortfall {
  enum class Kind { none, thin, refused } kind = Kind::none;
  std::string reason;
};

struct KernelResult {
  const Kernel* kernel = nullptr;
  std::string device;
  std::vector<ObligationResult> obligations;
  std::vector<std::uint64_t> clause_counts;  ///< evaluations by clause of the contract
  double seconds = 0;
  double depth = 1;                          ///< elements as a part of the default campaign's, 1 at most
  double floor_seconds = 0;                  ///< until a timed campaign reached its floor; 0: it did not, or was not timed
  Shortfall shortfall{};

  bool falsified() const;
  /// The falsified obligation that says most about the fault, which alone is shrunk; null where none was falsified.
  const ObligationResult* explanation() const;
  /// Everything ran and nothing was falsified or mistrusted, whatever the depth.
  bool clean() const;
  /// The kernel's device is not here.
  bool unavailable() const;
};

/// Called after each case, for progress; `done` counts from the first case of the campaign, wherever it was taken up.
using Progress = std::function<void(const Kernel&, std::int64_t done, std::int64_t planned)>;

/// Cases after which a campaign goes on in a fresh worker process, once the round of obligations is complete. A campaign that is
/// taken up between two such stretches goes on exactly as one that was never interrupted. More than a campaign has by default, and
/// enough calls for a kernel to fall over what earlier ones have left behind.
inline constexpr int kStretch = 2000;

/// What a campaign has come to after a stretch.
struct Checkpoint {
  int rounds = 0;        ///< a round is a case of each obligation
  int after = 0;         ///< rounds of the checkpoint before this one; 0: it is the first
  int total = 0;         ///< cases tried, as Counterexample::number counts them
  int hangs = 0;
  KernelResult so_far;   ///< not judged yet
  std::vector<std::vector<double>> ratios;  ///< by obligation: largest error / bound of each passed case
};

/// How a campaign goes on after an interruption.
struct Continuation {
  std::optional<Checkpoint> from{};  ///< empty: from the first case
  /// Called after each stretch but the last. `ratios` are those of that stretch alone.
  std::function<void(const Checkpoint&)> save{};
};

KernelResult run_campaign(const OpDescriptor& op, const Kernel& kernel, const CampaignOptions& options,
                          const Progress& progress = {}, const Continuation& continuation = {});

/// Runs one obligation on one case in a fresh worker (replay).
Outcome run_case(const OpDescriptor& op, const Obligation& obligation, const Kernel& kernel, const Case& c,
                 std::chrono::milliseconds limit);

}  // namespace assay::falsify
