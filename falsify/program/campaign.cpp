#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/errors.hpp"
#include "falsify/engine/percentile.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/program/check.hpp"
#include "falsify/program/system.hpp"

namespace assay::falsify {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Expected values that a zero would fail, at least: as for operations.
constexpr double kMinEvidence = 16, kMinShare = 0.25;
constexpr int kRoundsForEvidence = 20;
/// Cases of each obligation below which a verdict is thin.
constexpr int kLeastRounds = (kDefaultCases + 2) / 3;
static_assert(kLeastRounds >= kMinDepth * kDefaultCases && kLeastRounds - 1 < kMinDepth * kDefaultCases);

/// Failures of the system's own are findings; what this machine lacks is thrown.
Outcome outcome_of(const SystemObligation& obligation, const SystemTrial& trial) {
  const auto failure = [](Finding::Kind kind, const std::exception& e) {
    return Outcome::falsify({kind, e.what(), {}, {}});
  };
  try {
    return obligation.check(trial);
  } catch (const InputError& e) {  // from the builder or the differentiation: names leaf and step
    return failure(Finding::Kind::error, e);
  } catch (const ContractViolation& e) {
    return failure(Finding::Kind::contract, e);
  } catch (const DeviceError& e) {
    return failure(Finding::Kind::error, e);
  } catch (const WrongStep& e) {
    return failure(e.fault.finding.kind, e);
  }
}

/// The same of a layer that may be too large for this machine, or in a format that its kernels may not have.
Outcome if_it_fits(const SystemObligation& obligation, const SystemTrial& trial) {
  try {
    return outcome_of(obligation, trial);
  } catch (const Unavailable& e) {
    return Outcome::not_applicable(e.why);
  } catch (const std::bad_alloc&) {
    return Outcome::not_applicable("there is no memory to judge the case");
  }
}

class Campaign {
 public:
  Campaign(const SystemKernel& kernel, const CampaignOptions& options, const SystemProgress& progress,
           std::int64_t elements)
      : kernel_(kernel), op_(kernel.system().op), options_(options), progress_(progress), wanted_(elements) {
    result_.kernel = &kernel.kernel();
    for (const SystemObligation* o : kernel.system().obligations) {
      if (!options.only.empty() && o->info.id != options.only) continue;
      obligations_.push_back(o);
      result_.obligations.emplace_back().info = &o->info;
    }
    ratios_.resize(obligations_.size()), bounds_.resize(obligations_.size());
  }

  nlohmann::json run() {
    try {
      result_.device = device(kernel_.kernel().backend).description();
      for (int number = 0; number < options_.cases && !stop_ && lacks_elements() && round(number); ++number)
        if (rounds_ == kLeastRounds && options_.time.count() > 0) result_.floor_seconds = seconds_since(begin_);
    } catch (const Unavailable& e) {
      for (ObligationResult& o : result_.obligations)
        if (o.verdict == Verdict::passed) o.verdict = Verdict::unavailable, o.reason = e.why;
    }
    for (std::size_t o = 0; o < obligations_.size(); ++o) judge(o);
    if (const ObligationResult* best = result_.explanation())
      for (ObligationResult& o : result_.obligations)
        if (&o == best && options_.shrink)
          shrink(*obligations_[static_cast<std::size_t>(&o - result_.obligations.data())], o);
    result_.depth = std::min(1.0, static_cast<double>(rounds_) / kDefaultCases);
    if (rounds_ < kLeastRounds && !result_.falsified() && !result_.unavailable())
      result_.shortfall = {Shortfall::Kind::thin,
                           fmt::format("{} cases of each obligation, and {} are the least", rounds_, kLeastRounds)};
    result_.seconds = seconds_since(begin_);
    return to_json(op_, result_);
  }

 private:
  /// The time is up, but not before every obligation has had a case, with evidence as far as twenty cases give it.
  bool is_enough(std::size_t o, int number) const {
    if (options_.time.count() == 0 || number == 0 || Clock::now() - begin_ < options_.time) return false;
    if (result_.falsified()) return true;
    return !(options_.to_floor && rounds_ < kLeastRounds) &&
           !(number < kRoundsForEvidence && lacks_evidence(result_.obligations[o]));
  }
  bool lacks_elements() const {
    std::int64_t elements = 0;
    for (const ObligationResult& o : result_.obligations) elements += o.elements;
    return wanted_ == 0 || elements < wanted_;
  }
  static bool lacks_evidence(const ObligationResult& record) {
    return record.cases > 0 &&
           (record.elements == 0 ||
            record.evidence < std::min(kMinEvidence, kMinShare * static_cast<double>(record.elements)));
  }

  /// One case of every obligation: a small one, or one of any size. Returns false once there is enough of all.
  bool round(int number) {
    const std::uint64_t seed = derive(options_.seed, fmt::format("case {}", number));
    const System& system = kernel_.system();
    std::optional<Case> practice;
    if (options_.dims.empty())
      practice = draw_practice(system, kernel_.kernel().backend, number, derive(seed, "practice"));
    const Case drawn[] = {practice ? *practice : draw(system, false, derive(seed, "any size"), options_.dims),
                          draw(system, true, derive(seed, "small"), options_.dims)};
    const SystemTrial trials[] = {{kernel_, drawn[0]}, {kernel_, drawn[1]}};
    bool any = false, whole = true;
    for (std::size_t o = 0; o < obligations_.size() && !stop_; ++o) {
      if (result_.obligations[o].verdict != Verdict::passed) continue;
      if (is_enough(o, number)) {
        whole = false;
        continue;
      }
      any = true;
      const bool small = !obligations_[o]->any_size;
      one_case(o, drawn[small], trials[small]);
    }
    rounds_ += whole;
    return any;
  }

  void one_case(std::size_t o, const Case& c, const SystemTrial& trial) {
    ObligationResult& record = result_.obligations[o];
    const auto begin = Clock::now();
    ++total_;
    if (progress_) progress_(*obligations_[o], c, total_);
    trial.bounds = 0;
    const bool fits = c.region < 0 && !in_16_bits(trial.block());
    const Outcome outcome = fits ? outcome_of(*obligations_[o], trial) : if_it_fits(*obligations_[o], trial);
    ++record.tried.cases;
    record.cases += outcome.kind != Outcome::Kind::not_applicable;
    record.elements += outcome.elements, record.nonzero += outcome.nonzero;
    record.evidence += static_cast<double>(outcome.nonzero - outcome.zero_passes);
    record.worst = std::max(record.worst, outcome.worst);
    bounds_[o] += trial.bounds;
    if (outcome.kind == Outcome::Kind::passed) ratios_[o].push_back(outcome.worst);
    if (outcome.kind == Outcome::Kind::not_applicable) record.inapplicable = outcome.reason;
    if (outcome.kind == Outcome::Kind::falsified) {
      record.verdict = Verdict::falsified;
      record.counterexample = Counterexample{
          .first = c, .smallest = c, .finding = *outcome.finding, .reproduction = "again", .number = total_};
      stop_ = stop_ || options_.stop_at_first;
    }
    record.seconds += seconds_since(begin);
  }

  void judge(std::size_t o) {
    ObligationResult& record = result_.obligations[o];
    record.typical = percentile(ratios_[o], 0.5);
    if (record.verdict != Verdict::passed) return;
    const auto evidence = static_cast<std::int64_t>(record.evidence);
    if (record.tried.cases == 0) {
      record.verdict = Verdict::not_run, record.reason = "the campaign ended before its first case";
    } else if (record.cases == 0) {
      record.verdict = Verdict::not_applicable, record.reason = record.inapplicable;
    } else if (record.elements == 0) {
      record.verdict = Verdict::mistrusted, record.reason = "no element was compared with a small bound";
    } else if (lacks_evidence(record)) {
      record.verdict = Verdict::mistrusted;
      record.reason = fmt::format("{} of {} expected values are zero, or within their bounds of it",
                                  record.elements - evidence, record.elements);
    } else if (bounds_[o] > 0) {
      record.reason =
          fmt::format("{:.3f} of {} composed bounds are finite and below 0.01 of the rms; the others are no evidence",
                      static_cast<double>(record.elements) / static_cast<double>(bounds_[o]), bounds_[o]);
    }
  }

  /// Lowers dims and switches options off, one at a time, as long as the obligation fails.
  void shrink(const SystemObligation& obligation, ObligationResult& record) {
    Counterexample& x = *record.counterexample;
    const auto begin = Clock::now();
    const auto fails = [&](const Case& c) {
      ++x.shrink_tried;
      try {
        const Outcome outcome = outcome_of(obligation, SystemTrial(kernel_, c));
        if (outcome.kind != Outcome::Kind::falsified) return false;
        x.smallest = c, x.finding = *outcome.finding;
        return true;
      } catch (const InputError&) {
        return false;  // no configuration
      }
    };
    x.fails_again = fails(x.first);
    if (!x.fails_again) x.reproduction = "not again: it is not reproducible";
    bool smaller = x.fails_again;
    while (smaller && x.shrink_complete) {
      smaller = false;
      for (const Case& c : simpler(x.smallest)) {
        if (Clock::now() - begin > options_.shrink_budget) x.shrink_complete = false;
        if (!x.shrink_complete) break;
        if (fails(c)) {
          smaller = true;
          break;
        }
      }
    }
    x.shrink_seconds = seconds_since(begin);
  }

  std::vector<Case> simpler(const Case& c) const {
    std::vector<Case> all;
    const auto is_given = [&](std::size_t d) { return d < options_.dims.size() && options_.dims[d] != kDrawnSmall; };
    Case few = c;  // of each at most two
    for (std::size_t d = 0; d < c.dims.size(); ++d)
      if (!is_given(d)) few.dims[d] = std::min<Index>(c.dims[d], 2);
    if (!(few == c)) all.push_back(few);
    for (std::size_t d = 0; d < c.dims.size(); ++d) {
      const bool given = is_given(d);
      for (const Index extent : {op_.dims[d].min, c.dims[d] / 2, c.dims[d] - 1})
        if (!given && op_.dims[d].min <= extent && extent < c.dims[d]) all.emplace_back(c).dims[d] = extent;
      // Length follows s, and heads follow kv_heads.
      if (!given && d + 1 < c.dims.size() && c.dims[d] > op_.dims[d].min) {
        Case both = c;
        both.dims[d] = op_.dims[d].min;
        both.dims[d + 1] = op_.dims[d + 1].min;
        all.push_back(both);
      }
    }
    for (std::size_t p = 0; p < c.params.size(); ++p)
      if (const double plain = op_.params[p].typical; c.params[p] != plain) all.emplace_back(c).params[p] = plain;
    return all;
  }

  const SystemKernel& kernel_;
  const OpDescriptor& op_;
  const CampaignOptions& options_;
  const SystemProgress& progress_;
  std::vector<const SystemObligation*> obligations_;
  KernelResult result_;
  std::vector<std::vector<double>> ratios_;
  std::vector<std::int64_t> bounds_;
  const Clock::time_point begin_ = Clock::now();
  std::int64_t wanted_;  ///< elements; 0: any number
  int total_ = 0, rounds_ = 0;
  bool stop_ = false;
};

}  // namespace

nlohmann::json run_campaign(const SystemKernel& kernel, const CampaignOptions& options, const SystemProgress& progress,
                            std::int64_t elements) {
  return Campaign(kernel, options, progress, elements).run();
}

nlohmann::json ended_in(const SystemKernel& kernel, std::string_view obligation, const Case& c, int number,
                        Finding::Kind kind, const std::string& meaning) {
  KernelResult result;
  result.kernel = &kernel.kernel();
  for (const SystemObligation* o : kernel.system().obligations) {
    ObligationResult& record = result.obligations.emplace_back();
    record.info = &o->info;
    record.verdict = Verdict::not_run, record.reason = "the process had ended";
    if (o->info.id != obligation) continue;
    record.verdict = Verdict::falsified, record.reason = "", record.cases = 1;
    record.counterexample = Counterexample{
        .first = c, .smallest = c, .finding = {kind, meaning, {}, {}}, .reproduction = "once", .number = number};
  }
  return to_json(kernel.system().op, result);
}

Outcome run_case(const SystemKernel& kernel, std::string_view id, const Case& c, SystemTrial::Alter alter,
                 SystemTrial::Check check) {
  for (const SystemObligation* o : kernel.system().obligations)
    if (o->info.id == id) return outcome_of(*o, SystemTrial(kernel, c, std::move(alter), std::move(check)));
  throw InputError("obligation " + std::string(id), fmt::format("{} does not have it", kernel.system().op.name),
                   fmt::format("`assay explain {}` lists them", kernel.system().op.name));
}

}  // namespace assay::falsify
