#include "falsify/engine/campaign.hpp"

#include <fmt/format.h>
#include <rapidcheck/Random.h>
#include <rapidcheck/seq/Create.h>
#include <rapidcheck/shrinkable/Create.h>

#include <algorithm>
#include <utility>

#include "falsify/engine/admit.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/percentile.hpp"
#include "falsify/engine/trial.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify {
namespace {

using Clock = std::chrono::steady_clock;

/// Minimum number of expected values that a zero would fail: a kernel that is wrong in a quarter of all values passes
/// 16 of them by chance once in a hundred times (0.75^16). A number, not a share: a call may write few rows of a large
/// table.
constexpr double kMinEvidence = 16;
/// Minimum share instead, for campaigns that compare fewer elements.
constexpr double kMinShare = 0.25;

/// Rounds within which an obligation must find a case with evidence, regardless of the time limit.
constexpr int kRoundsForEvidence = 20;

/// Number of thread orders tried in addition to the default order.
constexpr std::uint64_t kOrders = 8;

/// Repeated runs of a failing call, to see whether the failure is reproducible.
constexpr int kFurtherRuns = 5;

/// Limit on hangs: each costs several times the limit of a call, and a kernel that hangs under one obligation hangs
/// under most.
constexpr int kMaxHangs = 2;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// State of one campaign.
class Campaign {
 public:
  Campaign(const OpDescriptor& op, const Kernel& kernel, const CampaignOptions& options, const Progress& progress,
           const Continuation& continuation)
      : op_(op), kernel_(kernel), options_(options), progress_(progress), save_(continuation.save),
        worker_(options.limit) {
    result_.kernel = &kernel;
    for (const Obligation& obligation : obligations(op.name)) {
      if (!options.only.empty() && obligation.info->id != options.only) continue;
      obligations_.push_back(&obligation);
      result_.obligations.emplace_back().info = obligation.info;
    }
    ratios_.resize(obligations_.size());
    if (continuation.from) resume_from(*continuation.from);
  }

  KernelResult run() {
    begin_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(result_.seconds));
    if (options_.time.count() > 0) deadline_ = begin_ + options_.time;
    const auto count = static_cast<std::int64_t>(obligations_.size()), planned = options_.cases * count;
    const auto open = [](const ObligationResult& o) { return o.verdict == Verdict::passed; };
    rounds_ = worker_start_.rounds;
    for (int number = worker_start_.rounds;
         number < options_.cases && !stop_ && std::ranges::any_of(result_.obligations, open); ++number) {
      if (total_ - worker_start_.total >= kCasesPerWorker) restart_worker(number);
      for (std::size_t o = 0; o < obligations_.size() && !stop_; ++o) {
        const int every = draw_spec(obligations_[o]->info->by).every;
        ObligationResult& record = result_.obligations[o];
        const bool enough = number > 0 && deadline_reached() && !lacks_evidence(record) && !needed_for_floor(o, number);
        skipped_ = skipped_ || enough;
        if (record.verdict == Verdict::passed && number % every == 0 && !enough) one_case(o, number);
        end_in_time(number);
        if (progress_) progress_(kernel_, number * count + static_cast<std::int64_t>(o) + 1, planned);
      }
      if (!stop_) rounds_ = number + 1;
      if (deadline_ && !floor_reached_ && reaches_floor()) {
        floor_reached_ = true;
        result_.floor_seconds = seconds_since(begin_);
      }
    }
    for (std::size_t o = 0; o < obligations_.size(); ++o) judge(o);
    set_aside();
    if (!result_.falsified() && !result_.unavailable()) measure_depth();
    explain();
    for (std::size_t o = 0; o < ratios_.size(); ++o)
      result_.obligations[o].typical = percentile(std::move(ratios_[o]), 0.5);
    return so_far();
  }

 private:
  void resume_from(const Checkpoint& from) {
    worker_start_ = {.rounds = from.rounds, .total = from.total};
    total_ = from.total, hangs_ = from.hangs;
    result_ = from.so_far;
    floor_reached_ = result_.floor_seconds > 0;
    result_.kernel = &kernel_;
    ratios_ = from.ratios;
    for (const auto& ratios : ratios_) saved_.push_back(ratios.size());
  }

  /// Returns the result so far, including the counts of an earlier process of the campaign.
  KernelResult so_far() const {
    KernelResult result = result_;
    const std::string& device = worker_.device();
    if (result.device.empty()) result.device = device;
    else if (!device.empty() && device != result.device) result.device += ", then " + device;
    const std::vector<std::uint64_t> counts = worker_.clause_counts(op_);
    result.clause_counts.resize(counts.size());
    for (std::size_t c = 0; c < counts.size(); ++c) result.clause_counts[c] += counts[c];
    result.seconds = seconds_since(begin_);
    return result;
  }

  /// Starts a fresh worker process with no state but the checkpoint's.
  void restart_worker(int number) {
    worker_.restart();
    previous_.clear();
    const WorkerStart ended = std::exchange(worker_start_, {.rounds = number, .total = total_});
    if (!save_) return;
    Checkpoint checkpoint{
        .rounds = number, .after = ended.rounds, .total = total_, .hangs = hangs_, .so_far = so_far(), .ratios = {}};
    saved_.resize(ratios_.size());
    for (std::size_t o = 0; o < ratios_.size(); ++o) {
      checkpoint.ratios.emplace_back(ratios_[o].begin() + static_cast<std::ptrdiff_t>(saved_[o]), ratios_[o].end());
      saved_[o] = ratios_[o].size();
    }
    save_(checkpoint);
  }

  /// True once the time for drawing cases is over. After a failure, half of the remaining time is reserved for its
  /// explanation.
  bool deadline_reached() const { return deadline_ && Clock::now() > cases_until_.value_or(*deadline_); }
  bool time_is_over() const {
    return deadline_reached() && (!options_.to_floor || floor_reached_ || result_.falsified());
  }
  /// True if the case adds to the floor: the only cases drawn after the time limit. Twice as many rounds as the default
  /// campaign has make up for refused cases.
  bool needed_for_floor(std::size_t o, int number) {
    return !time_is_over() && number < 2 * kDefaultCases &&
           (refuses_most(o) || floor().adds(o, drawn(o, number), coverage_towards_floor(), applicable()));
  }
  /// True if too few accepted cases are left, of an obligation with enough cases.
  bool refuses_most(std::size_t o) {
    const ObligationResult& record = result_.obligations[o];
    if (record.refused == 0) return false;
    const int least = floor().least_cases(o);
    return record.cases >= least && record.cases - record.refused < std::min(least, (record.cases + 2) / 3);
  }
  /// True if the obligation compared nothing, or almost only zeros.
  static bool lacks_evidence(const ObligationResult& record) {
    return record.verdict == Verdict::passed && record.cases > record.refused &&
           (record.elements == 0 || mostly_zeros(record));
  }
  static bool mostly_zeros(const ObligationResult& record) {
    return record.evidence < std::min(kMinEvidence, kMinShare * static_cast<double>(record.elements));
  }

  /// Stops once the time has passed, but not before every obligation has been tried or one has failed; obligations
  /// without evidence get up to kRoundsForEvidence rounds. After that, calls are abandoned one second past the
  /// deadline.
  void end_in_time(int number) {
    if (!deadline_) return;
    const bool early = number == 0 || (options_.to_floor && !floor_reached_) ||
                       (number < kRoundsForEvidence && std::ranges::any_of(result_.obligations, lacks_evidence));
    if (early && !result_.falsified()) return worker_.set_deadline(Clock::time_point::max());
    worker_.set_deadline(*deadline_ + std::chrono::seconds(1));
    if (!cases_until_ && result_.falsified())
      cases_until_ = *deadline_ - std::min<Clock::duration>((*deadline_ - Clock::now()) / 2, options_.shrink_budget);
    stop_ = stop_ || time_is_over();
  }

  bool reaches_floor() {
    for (std::size_t o = 0; o < obligations_.size(); ++o)
      if (refuses_most(o)) return false;
    return floor().lacks(coverage_towards_floor(), applicable()).empty();
  }

  Floor& floor() {
    if (!floor_) floor_.emplace(op_, obligations_, options_.seed, drawn_for(), &kernel_);
    return *floor_;
  }
  std::vector<Coverage> covered(Coverage ObligationResult::*which) const {
    std::vector<Coverage> list;
    for (const ObligationResult& o : result_.obligations) list.push_back(o.*which);
    return list;
  }
  /// Returns the coverage toward the floor. A refused case counts for its strategy, but not for elements, since nothing
  /// was compared.
  std::vector<Coverage> coverage_towards_floor() const {
    std::vector<Coverage> list = covered(&ObligationResult::tried);
    for (std::size_t o = 0; o < list.size(); ++o) list[o].elements = result_.obligations[o].accepted.elements;
    return list;
  }
  /// Marks the obligations with an applicable case; the others say nothing about the depth.
  std::vector<bool> applicable() const {
    std::vector<bool> list;
    for (const ObligationResult& o : result_.obligations) list.push_back(o.cases > 0 || o.tried.cases == 0);
    return list;
  }

  /// Sets the shortfall: `thin` if the tried cases miss the floor, `refused` if the accepted ones do.
  void measure_depth() {
    const bool whole = rounds_ >= kDefaultCases && !skipped_ &&
                       std::ranges::all_of(result_.obligations, [](const auto& o) { return o.refused == 0; });
    if (whole) return;
    using enum Shortfall::Kind;
    const double tried = floor().depth(covered(&ObligationResult::tried), applicable()),
                 accepted = floor().depth(covered(&ObligationResult::accepted), applicable());
    result_.depth = std::min(1.0, accepted);
    if (const std::string lacks = floor().lacks(covered(&ObligationResult::tried), applicable()); !lacks.empty()) {
      result_.shortfall = {thin, fmt::format("{:.0f}% of the default depth: {}", 100 * std::min(1.0, tried), lacks)};
      return;
    }
    const auto refusing = std::ranges::find(result_.obligations, Verdict::refused, &ObligationResult::verdict);
    const auto some =
        std::ranges::find_if(result_.obligations, [](const ObligationResult& o) { return o.refused > 0; });
    if (accepted < kMinDepth)
      result_.shortfall = {
          refused,
          fmt::format(
              "without the refused cases {:.0f}% of the elements of a default campaign are left, and at least a third is required: {}",
              100 * accepted, some->reason)};
    else if (refusing != result_.obligations.end())
      result_.shortfall = {refused, fmt::format("{}: {}", refusing->info->id, refusing->reason)};
  }

  DrawnFor drawn_for() const {
    return {.largest = options_.largest, .in_blocks = traits(kernel_.backend).blocks, .dims = options_.dims};
  }
  Case drawn(std::size_t o, int number) const {
    return admitted(
        op_, kernel_,
        draw(op_, *obligations_[o]->info, options_.seed, static_cast<std::uint64_t>(number), drawn_for()).value(),
        options_.dims);
  }

  /// Ends the campaign because something that every case needs is unavailable.
  void give_up(const std::string& why) {
    stop_ = true;
    for (ObligationResult& o : result_.obligations)
      if (o.verdict == Verdict::passed) o.verdict = Verdict::unavailable, o.reason = why;
  }

  void one_case(std::size_t o, int number) {
    ObligationResult& record = result_.obligations[o];
    const Obligation& obligation = *obligations_[o];
    const auto begin = Clock::now();
    const Case c = drawn(o, number);
    ++total_;
    Outcome outcome;
    try {
      outcome = try_obligation(obligation.check, op_, kernel_, c, worker_, Explain::yes);
    } catch (const Unavailable& e) {
      return give_up(e.why);
    } catch (const std::bad_alloc&) {  // in the oracle or its inputs: not the kernel's fault
      return give_up(fmt::format("there is no memory to judge the case {}", describe_extents(op_, c.dims, c.params)));
    } catch (const DeadlineReached&) {
      stop_ = true;
      return;
    }
    ++record.cases;
    record.tried.add(op_, c);
    if (outcome.kind != Outcome::Kind::refused) record.accepted.add(op_, c);
    record.elements += outcome.elements;
    record.nonzero += outcome.nonzero;
    record.compared += outcome.elements > 0;
    record.evidence += static_cast<double>(outcome.nonzero - outcome.zero_passes);
    switch (outcome.kind) {
      case Outcome::Kind::passed:
        record.worst = std::max(record.worst, outcome.worst);
        ratios_[o].push_back(outcome.worst);
        break;
      case Outcome::Kind::refused:
        ++record.refused;
        record.reason = outcome.reason;
        break;
      case Outcome::Kind::not_applicable:
        --record.cases;  // this case taught nothing; others may apply
        record.inapplicable = outcome.reason;
        break;
      case Outcome::Kind::falsified:
        record.verdict = Verdict::falsified;
        record.worst = std::max(record.worst, outcome.worst);
        hangs_ += outcome.finding->kind == Finding::Kind::hang;
        record.counterexample = confirm(obligation, c, *outcome.finding);
        stop_ = stop_ || options_.stop_at_first || hangs_ == kMaxHangs;
        break;
    }
    previous_ = c.dims;
    record.seconds += seconds_since(begin);
  }

  /// Returns the failure in the current worker, after any earlier calls.
  std::optional<Finding> failure(const Obligation& obligation, const Case& c, Explain explain = Explain::no) {
    const std::optional<Outcome> outcome = outcome_of(obligation, c, explain);
    return outcome && outcome->kind == Outcome::Kind::falsified ? outcome->finding : std::nullopt;
  }
  std::optional<Finding> rerun_failure(const Obligation& obligation, const Case& c, Explain explain = Explain::no) {
    worker_.restart();
    return failure(obligation, c, explain);
  }
  /// Returns nothing if there is no outcome: the shrunk case violates the contract, its process does not restart, or
  /// the time is up.
  std::optional<Outcome> outcome_of(const Obligation& obligation, const Case& c, Explain explain) {
    try {
      return try_obligation(obligation.check, op_, kernel_, c, worker_, explain);
    } catch (const InvalidCase&) {
    } catch (const Unavailable&) {
    } catch (const DeadlineReached&) {
      stop_ = true;
    }
    return std::nullopt;
  }

  /// Confirms the failure in a fresh process: alone, under another thread order, or after another call.
  Counterexample confirm(const Obligation& obligation, const Case& drawn, const Finding& finding) {
    Counterexample example{.first = drawn,
                           .smallest = drawn,
                           .finding = finding,
                           .first_errors = finding.errors,
                           .reproduction = {},
                           .number = total_};
    end_in_time(0);
    const auto fails = [&](const Case& c, const std::string& how) {
      if (stop_) return false;
      const std::optional<Finding> again = rerun_failure(obligation, c, Explain::yes);
      if (!again) return false;
      example.smallest = c;
      example.finding = *again;
      example.reproduction = how;
      return example.fails_again = true;
    };
    if (fails(drawn, "in a fresh process")) return example;
    Case again = drawn;
    for (again.order = 1; traits(kernel_.backend).chosen_order && again.order <= kOrders; ++again.order)
      if (fails(again, "in a fresh process under this order of threads")) return example;
    again.order = 0;
    again.prelude = previous_.empty() ? drawn.dims : previous_;
    const Case before = admitted(op_, kernel_, prelude_of(op_, again));
    if (fails(again, fmt::format("in a fresh process after a call with {}",
                                 describe_extents(op_, before.dims, before.params))))
      return example;
    constexpr int kAttempts = 20;
    int failed = 0;
    for (int i = 0; i < kAttempts && !stop_; ++i) failed += failure(obligation, drawn).has_value();
    example.reproduction =
        stop_ ? "once: the time had passed before it was tried again"
              : fmt::format("{} of {} further runs: timing or earlier calls decide", failed, kAttempts);
    return example;
  }

  /// Shrinks the most informative failure and looks for a race in it. If the shrunk case no longer fails in the
  /// relation itself, another failure becomes the most informative, and is shrunk instead.
  void explain() {
    if (options_.shrink && shrink_budget().count() > 0)
      for (std::size_t o = 0; o < obligations_.size(); ++o) compare_bits_of(o), look_for_race(o);
    const ObligationResult* shrunk = nullptr;
    for (const ObligationResult* chosen = result_.explanation(); chosen != shrunk; chosen = result_.explanation()) {
      if (!chosen->counterexample->fails_again || !options_.shrink || shrink_budget().count() == 0) return;
      const std::size_t number = static_cast<std::size_t>(chosen - result_.obligations.data());
      ObligationResult& record = result_.obligations[number];
      const auto begin = Clock::now();
      if (record.counterexample->shrink_tried > 0) return;
      shrink_example(*obligations_[number], *record.counterexample);
      compare_bits_of(number);
      record.seconds += seconds_since(begin);
      shrunk = chosen;
    }
  }

  static bool compares_with_oracle(const Obligation& o) {
    return o.info->by == "differential" || o.info->by == "exact";
  }

  /// Looks for a race only in oracle failures: if threads race, a relation has no meaning.
  void look_for_race(std::size_t number) {
    std::optional<Counterexample>& example = result_.obligations[number].counterexample;
    if (example && example->fails_again && compares_with_oracle(*obligations_[number])) {
      stop_ = false;
      example->race = race(*obligations_[number], example->smallest, example->finding);
    }
  }

  /// For a check that makes several calls: records whether calls that must agree in bits do not.
  void compare_bits_of(std::size_t number) {
    std::optional<Counterexample>& example = result_.obligations[number].counterexample;
    if (!example || !example->fails_again || !example->finding.call || example->finding.call->of < 2) return;
    stop_ = false;
    const std::optional<Finding> check = rerun_failure(*obligations_[number], example->smallest);
    example->of_bits =
        check && (check->kind == Finding::Kind::bits || (check->kind == Finding::Kind::value && check->bound == 0));
  }

  void shrink_example(const Obligation& obligation, Counterexample& example) {
    stop_ = false;
    // else look_for_race did
    if (!compares_with_oracle(obligation)) example.race = race(obligation, example.smallest, example.finding);
    if (example.race && example.race->order == example.race->other) return;  // shrinking a random failure means nothing
    const std::optional<std::uint64_t> other = example.race ? std::optional(example.race->other) : std::nullopt;
    // A kernel that keeps state between calls needs a process for every candidate; so does a thread order.
    const bool fresh_each = other || example.smallest.order != 0 || !example.smallest.prelude.empty();
    const Fails fails = [&](const Case& c) {
      if (stop_) return false;
      const auto found =
          fresh_each ? rerun_failure(obligation, c, other ? Explain::yes : Explain::no) : failure(obligation, c);
      return found && (!other || differs_under(obligation, c, *found, *other));
    };
    const DrawSpec spec = draw_spec(obligation.info->by);
    const auto failing =
        admitted(op_, kernel_, rc::shrinkable::shrinkRecur(example.smallest, [this, spec](const Case& x) {
                   return rc::seq::fromContainer(simpler(op_, spec, x));
                 }));
    const Shrunk shrunk = shrink(op_, *obligation.info, failing, kernel_, fails, shrink_budget(), options_.dims);
    // The reported case must fail on its own: shrinking in a used worker could have followed another failure.
    if (const auto confirmed = rerun_failure(obligation, shrunk.smallest, Explain::yes)) {
      example.smallest = shrunk.smallest;
      example.finding = *confirmed;
      if (example.race) example.race = race(obligation, example.smallest, example.finding);
    }
    example.shrink_tried = shrunk.tried;
    example.shrink_seconds = shrunk.seconds;
    example.shrink_complete = shrunk.complete;
  }

  /// Returns the outcome of the case under another thread order if it differs from `found`; empty if it is the same.
  std::optional<std::string> differs_under(const Obligation& obligation, Case c, const Finding& found,
                                           std::uint64_t order) {
    c.order = order;
    worker_.restart();
    const std::optional<Outcome> outcome = outcome_of(obligation, c, Explain::yes);
    if (!outcome || outcome->kind == Outcome::Kind::refused || outcome->kind == Outcome::Kind::not_applicable)
      return std::nullopt;
    if (outcome->kind == Outcome::Kind::passed) return "it passes";
    // Different bits are no race if the kernel declares that it may sum in any order.
    if (!kernel_.deterministic || outcome->finding->outputs == found.outputs) return std::nullopt;
    return outcome->finding->message;
  }
  std::optional<Race> race(const Obligation& obligation, const Case& c, const Finding& found) {
    if (found.kind == Finding::Kind::hang) return std::nullopt;
    const BackendTraits backend = traits(kernel_.backend);
    if (backend.host && !backend.same_order) return two_runs(obligation, c, found);
    if (!backend.chosen_order) return std::nullopt;
    for (std::uint64_t order = 0; order <= kOrders && !stop_; ++order)
      if (order != c.order)
        if (auto gives = differs_under(obligation, c, found, order)) return Race{c.order, order, std::move(*gives)};
    return std::nullopt;
  }

  /// Repeats the same call in fresh processes, since threads on a real processor race in an order that no seed
  /// controls.
  std::optional<Race> two_runs(const Obligation& obligation, const Case& c, const Finding& found) {
    for (int run = 0; run < kFurtherRuns && !stop_; ++run)
      if (auto gives = differs_under(obligation, c, found, c.order)) return Race{c.order, c.order, std::move(*gives)};
    return std::nullopt;
  }

  std::chrono::milliseconds shrink_budget() const {
    if (!deadline_) return options_.shrink_budget;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline_ - Clock::now());
    return std::clamp(left, std::chrono::milliseconds(0), options_.shrink_budget);
  }

  void judge(std::size_t number) {
    ObligationResult& record = result_.obligations[number];
    if (record.verdict != Verdict::passed) return;
    const int inapplicable = record.tried.cases - record.cases;
    if (record.refused == record.cases && inapplicable > record.refused) {
      record.verdict = Verdict::not_applicable;
      record.reason = record.inapplicable;
    } else if (record.cases == 0 && stop_) {
      record.verdict = Verdict::not_run;
      record.reason = hangs_ == kMaxHangs ? fmt::format("the kernel hung {} times and was not tried further", hangs_)
                                          : "the campaign ended before its first case";
    } else if (record.cases > 0 && record.refused == record.cases) {
      record.verdict = Verdict::refused;
    } else if (refuses_most(number)) {
      record.verdict = Verdict::refused;
      record.reason = fmt::format("{} of {} cases refused, of which {} are the least to be left: {}", record.refused,
                                  record.cases, floor().least_cases(number), record.reason);
    } else if (record.elements == 0) {
      record.verdict = Verdict::mistrusted;
      record.reason = "no output element was compared";
    } else if (mostly_zeros(record)) {
      record.verdict = Verdict::mistrusted;
      record.reason = fmt::format(
          "{} of {} expected values are zero, or within their bounds of it: a kernel that writes zeros would pass there",
          record.elements - static_cast<std::int64_t>(record.evidence), record.elements);
    }
  }

  /// The kernel's limits may leave a relation little to compare (splitting k where only multiples of 256 are taken), or
  /// only zeros (bias alone where the kernel takes no bias). If most obligations pass, this is no reason for mistrust.
  void set_aside() {
    if (kernel_.limits == nullptr || !kernel_.limits->restricts()) return;
    const auto passed = std::ranges::count(result_.obligations, Verdict::passed, &ObligationResult::verdict);
    if (2 * passed < std::ssize(result_.obligations)) return;
    for (ObligationResult& o : result_.obligations)
      if (o.verdict == Verdict::mistrusted)
        o.verdict = Verdict::not_applicable, o.reason = "within what the kernel takes, " + o.reason;
  }

  const OpDescriptor& op_;
  const Kernel& kernel_;
  const CampaignOptions& options_;
  const Progress& progress_;
  const std::function<void(const Checkpoint&)>& save_;
  Worker worker_;
  Clock::time_point begin_;
  struct WorkerStart {
    int rounds = 0, total = 0;  ///< at its start
  } worker_start_;
  std::vector<std::size_t> saved_;  ///< by obligation: number of `ratios_` that are in checkpoints
  std::vector<const Obligation*> obligations_;
  KernelResult result_;
  std::vector<std::vector<double>> ratios_;  ///< by obligation: largest error / bound of each passed case
  std::vector<Index> previous_;
  std::optional<Floor> floor_;
  bool floor_reached_ = false, skipped_ = false;
  int rounds_ = 0;  ///< completed
  std::optional<Clock::time_point> deadline_, cases_until_;
  int total_ = 0;
  int hangs_ = 0;
  bool stop_ = false;
};

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed: return "passed";
    case Verdict::falsified: return "falsified";
    case Verdict::mistrusted: return "mistrusted";
    case Verdict::not_applicable: return "not applicable";
    case Verdict::not_run: return "not run";
    case Verdict::refused: return "refused";
    case Verdict::unavailable: return "unavailable";
  }
  return "?";
}

bool KernelResult::falsified() const {
  return std::ranges::any_of(obligations, [](const auto& o) { return o.verdict == Verdict::falsified; });
}
bool KernelResult::clean() const {
  return std::ranges::all_of(
      obligations, [](const auto& o) { return o.verdict == Verdict::passed || o.verdict == Verdict::not_applicable; });
}
bool KernelResult::unavailable() const {
  return std::ranges::any_of(obligations, [](const auto& o) { return o.verdict == Verdict::unavailable; });
}

KernelResult run_campaign(const OpDescriptor& op, const Kernel& kernel, const CampaignOptions& options,
                          const Progress& progress, const Continuation& continuation) {
  return Campaign(op, kernel, options, progress, continuation).run();
}

Outcome run_case(const OpDescriptor& op, const Obligation& obligation, const Kernel& kernel, const Case& c,
                 std::chrono::milliseconds limit) {
  Worker worker(limit);
  return try_obligation(obligation.check, op, kernel, c, worker, Explain::yes);
}

}  // namespace assay::falsify
