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

/// The mean share of expected values that are not zero, below which agreement says little. Right campaigns are
/// at 0.6 and above, so one falls below by chance in none of a great many.
constexpr double kLeastEvidence = 0.25;

/// Rounds within which an obligation finds a case that is evidence, whatever the time.
constexpr int kRoundsForEvidence = 20;

/// Each hang costs several times the limit of a call; a kernel that hangs under one obligation does so under most.
constexpr int kMostHangs = 2;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// State of one campaign.
class Campaign {
 public:
  Campaign(const OpDescriptor& op, const Kernel& kernel, const CampaignOptions& options, const Progress& progress,
           const Continuation& continuation)
      : op_(op), kernel_(kernel), options_(options), progress_(progress), save_(continuation.save), worker_(options.limit) {
    result_.kernel = &kernel;
    for (const Obligation& obligation : obligations(op.name)) {
      if (!options.only.empty() && obligation.info->id != options.only) continue;
      obligations_.push_back(&obligation);
      result_.obligations.emplace_back().info = obligation.info;
    }
    ratios_.resize(obligations_.size());
    if (continuation.from) take_up(*continuation.from);
  }

  KernelResult run() {
    begin_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(result_.seconds));
    if (options_.time.count() > 0) deadline_ = begin_ + options_.time;
    const auto count = static_cast<std::int64_t>(obligations_.size()), planned = options_.cases * count;
    const auto open = [](const ObligationResult& o) { return o.verdict == Verdict::passed; };
    for (int number = stretch_.rounds; number < options_.cases && !stop_ && std::ranges::any_of(result_.obligations, open); ++number) {
      if (total_ - stretch_.total >= kStretch) end_stretch(number);
      for (std::size_t o = 0; o < obligations_.size() && !stop_; ++o) {
        const int every = draw_spec(obligations_[o]->info->by).every;
        ObligationResult& record = result_.obligations[o];
        const bool enough = number > 0 && time_is_up() && !lacks_evidence(record);
        if (record.verdict == Verdict::passed && number % every == 0 && !enough) one_case(o, number);
        end_in_time(number);
        if (progress_) progress_(kernel_, number * count + static_cast<std::int64_t>(o) + 1, planned);
      }
    }
    for (ObligationResult& o : result_.obligations) judge(o);
    set_aside();
    for (std::size_t o = 0; o < ratios_.size(); ++o) result_.obligations[o].typical = percentile(std::move(ratios_[o]), 0.5);
    return so_far();
  }

 private:
  void take_up(const Checkpoint& from) {
    stretch_ = {.rounds = from.rounds, .total = from.total};
    total_ = from.total, hangs_ = from.hangs;
    result_ = from.so_far;
    result_.kernel = &kernel_;
    ratios_ = from.ratios;
    for (const auto& ratios : ratios_) saved_.push_back(ratios.size());
  }

  /// The result as of now, with what an earlier process of the campaign had counted.
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

  /// What comes next begins in a fresh process, with nothing but what the checkpoint holds.
  void end_stretch(int number) {
    worker_.restart();
    previous_.clear();
    const Stretch ended = std::exchange(stretch_, {.rounds = number, .total = total_});
    if (!save_) return;
    Checkpoint checkpoint{.rounds = number, .after = ended.rounds, .total = total_, .hangs = hangs_, .so_far = so_far(), .ratios = {}};
    saved_.resize(ratios_.size());
    for (std::size_t o = 0; o < ratios_.size(); ++o) {
      checkpoint.ratios.emplace_back(ratios_[o].begin() + static_cast<std::ptrdiff_t>(saved_[o]), ratios_[o].end());
      saved_[o] = ratios_[o].size();
    }
    save_(checkpoint);
  }

  bool time_is_up() const { return deadline_ && Clock::now() > *deadline_; }
  /// What has been compared is nothing, or mostly zeros.
  static bool lacks_evidence(const ObligationResult& record) {
    return record.verdict == Verdict::passed && record.cases > record.refused &&
           (record.elements == 0 || record.evidence < kLeastEvidence * record.compared);
  }

  /// Stops once the time has passed, though not before every obligation has been tried, or one has failed; those that lack
  /// evidence have a few rounds more. From then on calls are given up a second after the end.
  void end_in_time(int number) {
    if (!deadline_) return;
    const bool early = number == 0 || (number < kRoundsForEvidence && std::ranges::any_of(result_.obligations, lacks_evidence));
    if (early && !result_.falsified()) return worker_.give_up_at(Clock::time_point::max());
    worker_.give_up_at(*deadline_ + std::chrono::seconds(1));
    stop_ = stop_ || time_is_up();
  }

  void one_case(std::size_t o, int number) {
    ObligationResult& record = result_.obligations[o];
    const Obligation& obligation = *obligations_[o];
    const auto begin = Clock::now();
    const rc::Shrinkable<Case> drawn =
        admitted(op_, kernel_, draw(op_, *obligation.info, options_.seed, static_cast<std::uint64_t>(number), options_.largest));
    const Case c = drawn.value();
    ++total_;
    Outcome outcome;
    try {
      outcome = try_obligation(obligation.check, op_, kernel_, c, worker_);
    } catch (const Unavailable& e) {
      record.verdict = Verdict::unavailable;
      record.reason = e.why;
      stop_ = true;
      for (ObligationResult& other : result_.obligations)
        if (other.verdict == Verdict::passed) other.verdict = Verdict::unavailable, other.reason = e.why;
      return;
    } catch (const TimeIsUp&) {
      stop_ = true;
      return;
    }
    ++record.cases;
    record.elements += outcome.elements;
    record.nonzero += outcome.nonzero;
    if (outcome.elements > 0) {
      ++record.compared;
      record.evidence += static_cast<double>(outcome.nonzero) / static_cast<double>(outcome.elements);
    }
    switch (outcome.kind) {
      case Outcome::Kind::passed:
        record.worst = std::max(record.worst, outcome.worst);
        ratios_[o].push_back(outcome.worst);
        break;
      case Outcome::Kind::refused: ++record.refused; record.reason = outcome.reason; break;
      case Outcome::Kind::not_applicable:
        --record.cases;  // of this case nothing was learnt; others may apply
        record.reason = outcome.reason;
        break;
      case Outcome::Kind::falsified:
        record.verdict = Verdict::falsified;
        record.worst = std::max(record.worst, outcome.worst);
        hangs_ += outcome.finding->kind == "hang";
        record.counterexample = examine(obligation, drawn, *outcome.finding);
        stop_ = stop_ || options_.stop_at_first || hangs_ == kMostHangs;
        break;
    }
    previous_ = c.dims;
    record.seconds += seconds_since(begin);
  }

  /// Fails in this worker, whatever it ran before.
  std::optional<Finding> failure(const Obligation& obligation, const Case& c) {
    try {
      const Outcome outcome = try_obligation(obligation.check, op_, kernel_, c, worker_);
      return outcome.kind == Outcome::Kind::falsified ? outcome.finding : std::nullopt;
    } catch (const InvalidCase&) {
      return std::nullopt;  // a simpler case that the contract does not admit is no counterexample
    } catch (const Unavailable&) {
      return std::nullopt;  // its process does not start again
    } catch (const TimeIsUp&) {
      stop_ = true;
      return std::nullopt;
    }
  }
  std::optional<Finding> failure_afresh(const Obligation& obligation, const Case& c) {
    worker_.restart();
    return failure(obligation, c);
  }

  /// Confirms the failure in a fresh process, alone or after another call, and shrinks it.
  Counterexample examine(const Obligation& obligation, const rc::Shrinkable<Case>& drawn, const Finding& finding) {
    Counterexample example{.first = drawn.value(), .smallest = drawn.value(), .finding = finding,
                           .first_errors = finding.errors, .reproduction = {}, .number = total_};
    end_in_time(0);
    rc::Shrinkable<Case> failing = drawn;
    // With state kept between calls every candidate needs a process of its own.
    bool fresh_each = false;
    if (failure_afresh(obligation, drawn.value())) {
      example.reproduction = "in a fresh process";
    } else {
      Case with_prelude = drawn.value();
      with_prelude.prelude = previous_.empty() ? drawn.value().dims : previous_;
      if (!stop_ && failure_afresh(obligation, with_prelude)) {
        example.reproduction = "in a fresh process, after a call with other dims";
        example.smallest = with_prelude;
        fresh_each = true;
        const DrawSpec spec = draw_spec(obligation.info->by);
        failing = rc::shrinkable::shrinkRecur(with_prelude, [this, spec](const Case& x) {
          return rc::seq::fromContainer(simpler(op_, spec, x));
        });
      } else {
        constexpr int kAttempts = 20;
        int failed = 0;
        for (int i = 0; i < kAttempts && !stop_; ++i) failed += failure(obligation, drawn.value()).has_value();
        example.reproduction = stop_ ? "once: the time had passed before it was tried again"
                                     : fmt::format("{} of {} further runs: timing or earlier calls decide", failed, kAttempts);
        return example;
      }
    }
    if (!options_.shrink || stop_) return example;
    const Fails fails = [&](const Case& c) {
      return (fresh_each ? failure_afresh(obligation, c) : failure(obligation, c)).has_value();
    };
    const Shrunk shrunk = shrink(op_, *obligation.info, failing, kernel_.arithmetic, fails, shrink_budget(), kernel_.storage);
    // What is reported must fail on its own: shrinking in a used worker could have led elsewhere.
    if (const auto confirmed = failure_afresh(obligation, shrunk.smallest)) {
      example.smallest = shrunk.smallest;
      example.finding = *confirmed;
    }
    example.shrink_tried = shrunk.tried;
    example.shrink_seconds = shrunk.seconds;
    example.shrink_complete = shrunk.complete;
    return example;
  }

  std::chrono::milliseconds shrink_budget() const {
    if (!deadline_) return options_.shrink_budget;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline_ - Clock::now());
    return std::clamp(left, std::chrono::milliseconds(0), options_.shrink_budget);
  }

  void judge(ObligationResult& record) const {
    if (record.verdict != Verdict::passed) return;
    if (record.cases == 0 && !record.reason.empty()) {
      record.verdict = Verdict::not_applicable;
    } else if (record.cases == 0 && stop_) {
      record.verdict = Verdict::not_applicable;
      record.reason = hangs_ == kMostHangs ? fmt::format("the kernel hung {} times and was not tried further", hangs_)
                                           : "the campaign ended before its first case";
    } else if (record.cases > 0 && record.refused == record.cases) {
      record.verdict = Verdict::refused;
    } else if (record.elements == 0) {
      record.verdict = Verdict::mistrusted;
      record.reason = "no output element was compared";
    } else if (record.evidence < kLeastEvidence * record.compared) {
      record.verdict = Verdict::mistrusted;
      record.reason = fmt::format("{} of {} expected values are zero: a kernel that writes zeros would pass too",
                                  record.elements - record.nonzero, record.elements);
    }
  }

  /// A relation may have little to compare within what a kernel takes (splitting k where only multiples of 256 are taken), or nothing but
  /// zeros (the bias alone where none is taken). Of a kernel that most obligations speak for, that is no reason for mistrust.
  void set_aside() {
    if (kernel_.limits == nullptr || !kernel_.limits->restricts()) return;
    const auto passed = std::ranges::count(result_.obligations, Verdict::passed, &ObligationResult::verdict);
    if (2 * passed < std::ssize(result_.obligations)) return;
    for (ObligationResult& o : result_.obligations)
      if (o.verdict == Verdict::mistrusted) o.verdict = Verdict::not_applicable, o.reason = "within what the kernel takes, " + o.reason;
  }

  const OpDescriptor& op_;
  const Kernel& kernel_;
  const CampaignOptions& options_;
  const Progress& progress_;
  const std::function<void(const Checkpoint&)>& save_;
  Worker worker_;
  Clock::time_point begin_;
  struct Stretch {
    int rounds = 0, total = 0;       ///< at its begin
  } stretch_;
  std::vector<std::size_t> saved_;   ///< by obligation: of `ratios_`, those that checkpoints hold
  std::vector<const Obligation*> obligations_;
  KernelResult result_;
  std::vector<std::vector<double>> ratios_;  ///< by obligation: largest error / bound of each passed case
  std::vector<Index> previous_;
  std::optional<Clock::time_point> deadline_;
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
    case Verdict::refused: return "refused";
    case Verdict::unavailable: return "unavailable";
  }
  return "?";
}

bool KernelResult::falsified() const {
  return std::ranges::any_of(obligations, [](const auto& o) { return o.verdict == Verdict::falsified; });
}
bool KernelResult::clean() const {
  return std::ranges::all_of(obligations, [](const auto& o) {
    return o.verdict == Verdict::passed || o.verdict == Verdict::not_applicable;
  });
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
  return try_obligation(obligation.check, op, kernel, c, worker);
}

}  // namespace assay::falsify
