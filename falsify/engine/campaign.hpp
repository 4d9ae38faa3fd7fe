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
  int cases = kDefaultCases;  ///< per obligation
  /// stop after this time, once all obligations were tried or one failed; 0: no limit
  std::chrono::milliseconds time{0};
  /// but not before the floor (depth.hpp) is reached or an obligation fails
  bool to_floor = false;
  std::uint64_t seed = 1;
  std::chrono::milliseconds limit{10'000};  ///< a case that takes longer is a hang
  std::chrono::milliseconds shrink_budget{10'000};
  bool stop_at_first = false;  ///< end the campaign at the first falsified obligation
  bool shrink = true;
  std::string only;           ///< one obligation id; empty: all
  Index largest = 0;          ///< dims of `by: large` cases, as DrawSpec::largest
  std::vector<Index> dims{};  ///< fixed extents, or kDrawnSmall; empty: all drawn
};

enum class Verdict {
  passed,
  falsified,
  mistrusted,      ///< nothing was compared, or almost only zeros: no evidence
  not_applicable,  ///< with the reason
  not_run,         ///< the campaign ended before its first case
  refused,         ///< the kernel refused all cases, or too many to run every strategy and placement once
  unavailable,     ///< its device is missing
};
std::string_view name(Verdict verdict);

/// Two thread orders under which the same call gives different results (Case::order). Equal orders: two runs, each in a
/// process of its own, differ.
struct Race {
  std::uint64_t order = 0, other = 0;
  std::string other_gives;  ///< "passes", or the finding under the other order
};

struct Counterexample {
  Case first;                              ///< as drawn
  Case smallest;                           ///< as shrunk, if it was (explanation), with prelude and thread order
  Finding finding;                         ///< of `smallest`
  std::optional<ErrorMap> first_errors{};  ///< of `first`, as Finding::errors
  std::string reproduction;  ///< "in a fresh process", "after a call with other dims", or how often it failed
  int number = 0;            ///< cases run by the campaign up to and including the failing one
  int shrink_tried = 0;
  double shrink_seconds = 0;
  bool shrink_complete = true;
  bool fails_again = false;  ///< `smallest` fails again in a fresh process
  /// calls that must agree bit for bit do not: the check's own finding, before a call is blamed
  bool of_bits = false;
  std::optional<Race> race{};
};

struct ObligationResult {
  const ObligationInfo* info = nullptr;
  Verdict verdict = Verdict::passed;
  std::string reason;          ///< why not applicable, not run, refused, mistrusted or unavailable
  std::string inapplicable{};  ///< reason why its last inapplicable case was inapplicable
  int cases = 0;               ///< run to the end
  int refused = 0;             ///< number of these refused by the kernel
  std::int64_t elements = 0;
  std::int64_t nonzero = 0;  ///< number of these whose expected value is not zero
  double evidence = 0;       ///< expected values that a zero would fail
  int compared = 0;          ///< cases in which at least one element was compared
  double worst = 0;          ///< largest error / bound
  double typical = 0;        ///< median over the passed cases of the largest error / bound in each
  double seconds = 0;
  Coverage tried{}, accepted{};  ///< by all cases, and by those not refused
  std::optional<Counterexample> counterexample;
};

/// Reason why a kernel as a whole does not pass although each obligation may have passed.
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
  double depth = 1;  ///< elements as a fraction of the default campaign's, at most 1
  /// time until a timed campaign reached its floor; 0: not reached, or not timed
  double floor_seconds = 0;
  Shortfall shortfall{};

  bool falsified() const;
  /// The falsified obligation that says most about the fault, the only one that is shrunk; null if none was falsified.
  const ObligationResult* explanation() const;
  /// True if everything ran and nothing was falsified or mistrusted, at any depth.
  bool clean() const;
  /// True if the kernel's device is missing.
  bool unavailable() const;
};

/// Called after each case, for progress; `done` counts from the campaign's first case, even after a resumption.
using Progress = std::function<void(const Kernel&, std::int64_t done, std::int64_t planned)>;

/// Cases per worker process, rounded up to a complete round of obligations. Restarting at fixed points makes a resumed
/// campaign identical to an uninterrupted one. Larger than a default campaign, and large enough for a kernel to fail on
/// state that earlier calls left.
inline constexpr int kCasesPerWorker = 2000;

/// State of a campaign after a stretch of cases in one worker process.
struct Checkpoint {
  int rounds = 0;  ///< a round is one case of each obligation
  int after = 0;   ///< rounds of the previous checkpoint; 0: this is the first
  int total = 0;   ///< cases tried, as Counterexample::number counts them
  int hangs = 0;
  KernelResult so_far;                      ///< verdicts not yet decided
  std::vector<std::vector<double>> ratios;  ///< by obligation: largest error / bound of each passed case
};

/// Resumption of a campaign after an interruption.
struct Continuation {
  std::optional<Checkpoint> from{};  ///< empty: start with the first case
  /// Called after each stretch but the last. `ratios` holds the values of that stretch alone.
  std::function<void(const Checkpoint&)> save{};
};

KernelResult run_campaign(const OpDescriptor& op, const Kernel& kernel, const CampaignOptions& options,
                          const Progress& progress = {}, const Continuation& continuation = {});

/// Runs one obligation on one case in a fresh worker (replay).
Outcome run_case(const OpDescriptor& op, const Obligation& obligation, const Kernel& kernel, const Case& c,
                 std::chrono::milliseconds limit);

}  // namespace assay::falsify
