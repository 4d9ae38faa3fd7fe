#include "falsify/mutation/study/study.hpp"

#include <fmt/format.h>
#include <rapidcheck/Random.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "falsify/mutation/study/summary.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Draws of other inputs for each obligation, with the dims of a differing case.
constexpr int kAgain = 2;
/// If fewer than kRare cases differ, tries kAround other inputs and layouts with the dims of each: the mutated code is
/// rarely reached.
constexpr std::size_t kRare = 8;
constexpr int kAround = 40;
/// Retries of a call that timed out: a GPU is shared with mutants that loop. Other failures are not retried.
constexpr int kRetries = 2;
/// Cases of each obligation before bits are compared.
constexpr int kFirstCases = 1;
/// One attack case in this many has a long dim.
constexpr int kLongEvery = 2;
/// One attack case in this many has a shape of the contract, and no long dim.
constexpr int kJointEvery = 8;
/// Octaves of the long dim, from 65 on, and the maximum of the second dim; in every second such case the second dim
/// exceeds kTile.
constexpr std::size_t kOctaves = 7;
constexpr Index kTile = 32, kTiles = 48;
/// Batches of mutants for each job, unless they would be smaller than kSmallest: each starts a worker and runs the
/// right kernel first.
constexpr std::size_t kBatchesEach = 16, kSmallest = 4;
/// Replaces infinity, which JSON lacks.
constexpr double kMost = 1e300;

/// Makes an attack case: all input strategies, and larger dims at times, so that paths chosen by size run. In every
/// second case one dim, each in its turn, is long, a second one exceeds a tile, and the others are small, so that loops
/// over tiles take several iterations for operations of any cost. Lengths go through all octaves, since 65 to 128 is as
/// likely to have a separate path as 513 to 1024. Half of these cases have whole tiles and a dense layout, which often
/// have a separate path.
Case attack_case(const OpDescriptor& op, std::uint64_t seed, int number) {
  DrawSpec spec{.strategies = {}, .directed = true};
  for (int s = 0; s < kStrategies; ++s)
    if (static_cast<Strategy>(s) != Strategy::directed) spec.strategies.push_back(static_cast<Strategy>(s));
  constexpr Index kLarge = 1 << 21;
  if (number % 16 == 3) spec.volume = kLarge;
  const auto own = scramble(derive(seed, "attack") ^ static_cast<std::uint64_t>(number));
  const auto drawn = [&] { return case_gen(op, spec)(rc::Random(own), 0).value(); };
  spec.large = number % 32 == 19;
  Case c = drawn();
  // Large outputs with many heads exceed a call's time limit.
  if (spec.large && std::accumulate(c.dims.begin(), c.dims.end(), 1.0, std::multiplies<>()) > kLarge) {
    spec.large = false;
    c = drawn();
  }
  if (number % kJointEvery == 5) make_joint(op, spec, {static_cast<std::uint64_t>(number / kJointEvery), 0}, c);
  if (number % kLongEvery != 0 || c.dims.empty()) return c;
  Random random(derive(own, "one long dim"));
  const std::size_t dims = c.dims.size(), turn = static_cast<std::size_t>(number / kLongEvery), longest = turn % dims;
  const std::size_t second = (longest + 1 + turn / dims % std::max<std::size_t>(dims - 1, 1)) % dims;
  std::size_t octaves = 1;
  while (octaves < kOctaves && 65 << octaves <= op.dims[longest].max) ++octaves;
  const double octave = static_cast<double>(turn / dims % octaves);
  const bool whole = random.chance(0.5);
  if (whole) c.layout = Layout::tight;
  for (std::size_t d = 0; d < dims; ++d) {
    const Index most = dims >= 5 ? 3 : 9;
    const Index n = d == longest  ? static_cast<Index>(std::ceil(64 * std::exp2(octave + random.uniform())))
                    : d == second ? random.between(random.chance(0.5) ? kTile + 1 : 1, kTiles)
                                  : std::clamp<Index>(c.dims[d], 1, random.between(1, most));
    const Index tile = !whole ? 1 : d == longest ? 16 : d == second || dims < 5 ? 4 : 1;
    c.dims[d] = std::clamp((n + tile - 1) / tile * tile, op.dims[d].min, op.dims[d].max);
  }
  make_valid(op, c.dims);
  return c;
}

/// True if the obligation could have drawn the case's inputs.
bool applies(const Obligation& obligation, const Case& c) {
  const DrawSpec spec = draw_spec(obligation.info->by);
  return (spec.directed && (c.strategy == Strategy::directed || c.strategy == Strategy::runs)) ||
         std::ranges::find(spec.strategies, c.strategy) != spec.strategies.end();
}

/// Compares outputs; NaN equals NaN unless the operation keeps bits.
bool same(const OpDescriptor& op, const Run& x, const Run& y) {
  for (std::size_t o = 0; o < x.outputs.size(); ++o)
    for (std::size_t i = 0; i < x.outputs[o].size(); ++i) {
      const float a = x.outputs[o][i], b = y.outputs[o][i];
      if (std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b)) continue;
      if (op.copies || !std::isnan(a) || !std::isnan(b)) return false;
    }
  return true;
}

/// Returns a call's time limit: the requested one, or ten times the longest call of the right kernel in a fresh worker
/// if that is more. Every mutant compiles its shader; for a large shader this takes seconds and is no hang.
std::chrono::milliseconds call_limit(const Kernel& right, std::chrono::milliseconds asked) {
  constexpr int kCalls = 2;
  const OpDescriptor& op = operation(right.op);
  Worker worker(std::chrono::minutes(5));
  Clock::duration longest{};
  for (int number = 0; number < kCalls; ++number) {
    const Case c = attack_case(op, 0, number);
    Trial trial(op, right, c, worker);
    const Problem problem = trial.problem();
    const auto begin = Clock::now();
    try {
      trial.run(problem, Poison::finite);
    } catch (const Interrupted&) {  // refused, or a failure that the study will find
    } catch (const InvalidCase&) {
    } catch (const Unavailable&) {  // the study will report it
      return asked;
    }
    longest = std::max(longest, Clock::now() - begin);
  }
  return std::max(asked, std::chrono::duration_cast<std::chrono::milliseconds>(10 * longest));
}

/// Makes the result of a mutant with any status.
json result_of(const AutomaticMutant& mutant, MutantStatus status, bool ended, Clock::time_point begin,
               const json& details) {
  json j{{"kernel", mutant.original->id},
         {"op", mutant.original->op},
         {"part", mutant.part},
         {"family", mutant.family},
         {"held_out", mutant.held_out},
         {"description", mutant.description},
         {"hash", mutant.hash},
         {"status", name(status)},
         {"ended", ended},
         {"seconds", std::chrono::duration<double>(Clock::now() - begin).count()}};
  j.update(details);
  return j;
}

/// Baseline check for sources that rebuild the originals of their mutants: runs the rebuilt, unmutated kernel on the
/// first cases; returns its failure, or null.
json complaint_of_original(const Kernel& original, const StudyOptions& options, Worker& worker) try {
  if (&original == &kernel(original.id)) return nullptr;
  const OpDescriptor& op = operation(original.op);
  for (int number = 0; number < std::min(options.cases, kFirstCases); ++number)
    for (const Obligation& obligation : obligations(op.name)) {
      if (number % draw_spec(obligation.info->by).every != 0) continue;
      const Case c = draw(op, *obligation.info, options.seed, static_cast<std::uint64_t>(number),
                          {.in_blocks = traits(original.backend).blocks})
                         .value();
      const Outcome outcome = try_obligation(obligation.check, op, original, c, worker);
      if (outcome.kind == Outcome::Kind::falsified)
        return {{"by", obligation.info->id},
                {"says", describe(op, c)},
                {"why", "its original, built anew: " + outcome.finding->message}};
    }
  return nullptr;
} catch (const Unavailable&) {  // the study will report it
  return nullptr;
}

class Study {
 public:
  Study(const AutomaticMutant& mutant, const StudyOptions& options, Worker& worker)
      : mutant_(mutant), wrong_(mutant.kernel), right_(*mutant.original), op_(operation(right_.op)), options_(options),
        worker_(worker) {}

  json run() {
    const auto begin = Clock::now();
    try {
      // Most mutants die at once. For the others, comparing bits is cheaper than oracles, and obligations cannot fail
      // on equal bits.
      const int first = std::min(options_.cases, kFirstCases);
      if (!campaign(0, first) && attack_differs() && !decided_) campaign(first, options_.cases);
      if (!decided_) decide_survivor();
      if (options_.matrix && decided_ == MutantStatus::killed) fill_matrix();
    } catch (const Unavailable& e) {
      decide(MutantStatus::unavailable, {{"why", e.why}});
    }
    return result_of(mutant_, *decided_, ended_, begin, details_);
  }

 private:
  void decide(MutantStatus status, json details) {
    decided_ = status;
    details_.update(details);
  }

  Outcome attempt(const Obligation& obligation, const Kernel& kernel, const Case& c) {
    return try_obligation(obligation.check, op_, kernel, c, worker_);
  }
  bool fails(const Obligation& obligation, const Kernel& kernel, const Case& c) {
    return attempt(obligation, kernel, c).kind == Outcome::Kind::falsified;
  }

  void note_end(const Outcome& outcome) {
    if (!outcome.finding) return;
    using enum Finding::Kind;
    const Finding::Kind kind = outcome.finding->kind;
    if (kind == hang || kind == crash || kind == error) ended_ = false;
  }

  /// True if the failure is the mutant's own: the right kernel passes the case. If the right kernel times out too, the
  /// machine is busy, and the result is unknown.
  bool confirmed(const Obligation& obligation, const Case& c) {
    if (!fails(obligation, right_, c)) return true;
    worker_.restart();
    if (const Outcome again = attempt(obligation, right_, c); again.kind == Outcome::Kind::falsified) {
      if (again.finding->kind != Finding::Kind::hang)
        decide(MutantStatus::unsound, {{"by", obligation.info->id}, {"says", describe(op_, c)}});
      return false;
    }
    worker_.restart();
    return fails(obligation, wrong_, c);
  }

  void killed(const Obligation& obligation, const Case& c, const Outcome& outcome, std::string_view phase) {
    decide(MutantStatus::killed, {{"by", obligation.info->id},
                                  {"cases", cases_},
                                  {"kind", name(outcome.finding->kind)},
                                  {"finding", outcome.finding->message},
                                  {"says", describe(op_, c)},
                                  {"phase", phase}});
  }

  /// Tries an obligation on a case; returns true if the outcome decides the mutant's status.
  bool decides(const Obligation& obligation, const Case& c, std::string_view phase) {
    const Outcome outcome = attempt(obligation, wrong_, c);
    note_end(outcome);
    last_worst_ = outcome.worst;
    if (outcome.kind != Outcome::Kind::falsified) return false;
    if (confirmed(obligation, c)) killed(obligation, c, outcome, phase);
    return decided_.has_value();
  }

  /// Runs rounds of cases of each obligation, until the first that decides.
  bool campaign(int begin, int end) {
    for (int number = begin; number < end; ++number)
      for (const Obligation& obligation : obligations(op_.name)) {
        if (number % draw_spec(obligation.info->by).every != 0) continue;
        const Case c = draw(op_, *obligation.info, options_.seed, static_cast<std::uint64_t>(number),
                            {.in_blocks = traits(right_.backend).blocks})
                           .value();
        ++cases_;
        if (decides(obligation, c, "campaign")) return true;
      }
    return false;
  }

  /// Returns the outputs of a kernel, or its ending.
  std::optional<Run> run_on(const Kernel& kernel, const Case& c, Outcome& ending) {
    Trial trial(op_, kernel, c, worker_);
    try {
      return trial.run(trial.problem(), Poison::finite);
    } catch (const Interrupted& interrupted) {
      ending = interrupted.outcome;
    } catch (const InvalidCase&) {  // a stretched dim is invalid with the others
      ending.kind = Outcome::Kind::refused;
    }
    return std::nullopt;
  }

  /// Runs the mutant on an attack case; returns its outputs, or nothing if it refused, failed, or hung more than once.
  std::optional<Run> run_mutant(const Case& c) {
    Outcome ending;
    std::optional<Run> got = run_on(wrong_, c, ending);
    note_end(ending);  // a single hang suffices for the screen before a GPU run
    if (!ending.finding || ending.finding->kind != Finding::Kind::hang) return got;
    Outcome again;
    for (int retry = 0; retry < kRetries && !again.finding; ++retry) {
      worker_.restart();
      got = run_on(wrong_, c, again);
    }
    late_ += !again.finding;
    return got;
  }

  /// Tries the obligations on a case with different bits; returns true if one decides. Otherwise records both errors,
  /// for the reviewer.
  bool objected(const Case& c) {
    for (const Obligation& obligation : obligations(op_.name)) {
      if (!applies(obligation, c)) continue;
      if (decides(obligation, c, "attack")) return true;
      worst_ = std::max(worst_, last_worst_);
      worst_of_right_ = std::max(worst_of_right_, attempt(obligation, right_, c).worst);
    }
    return falsified_at_dims(c);
  }

  /// Tries other inputs with these dims, which reach the mutated code; each obligation draws its own.
  bool falsified_at_dims(const Case& c) {
    for (const Obligation& obligation : obligations(op_.name)) {
      DrawSpec spec = draw_spec(obligation.info->by);
      if (spec.directed && op_.directed) spec.strategies.push_back(Strategy::directed);
      Random random(derive(c.seed, obligation.info->id));
      for (int again = 0; again < kAgain; ++again) {
        Case other = c;
        // Every case with these dims also runs on directed inputs, if the operation has any.
        other.strategy = again == 0 ? spec.strategies.back() : spec.strategies[random.below(spec.strategies.size())];
        other.seed = random.bits();
        ++cases_;
        if (decides(obligation, other, "attack")) return true;
      }
    }
    return false;
  }

  /// Runs the mutant and its original; returns true if bits differ.
  bool differs(const Case& c) {
    Outcome ending;
    const std::optional<Run> want = run_on(right_, c, ending);
    if (!want) {  // refused, invalid, or a worker that an earlier mutant damaged
      if (ending.kind != Outcome::Kind::refused) worker_.restart();
      return false;
    }
    const std::optional<Run> got = run_mutant(c);
    ++cases_;
    ++compared_;
    if (got && same(op_, *want, *got)) return false;
    ++differing_;
    return true;
  }

  /// Returns true if bits differ on any attack case. An obligation that fails there decides the mutant's status.
  bool attack_differs() {
    std::vector<Case> rare;
    for (int number = 0; number < options_.attack_cases && differing_ < options_.differing; ++number) {
      const Case c = attack_case(op_, options_.seed, number);
      if (!differs(c)) continue;
      if (differing_ == 1) first_ = {{"says", describe(op_, c)}, {"case", to_json(op_, c)}, {"differs_at", number}};
      if (rare.size() < kRare) rare.push_back(c);
      if (objected(c)) return true;
    }
    for (std::size_t turn = 0; turn < kAround * rare.size() && differing_ < options_.differing; ++turn) {
      const Case c = near(rare[turn % rare.size()], turn);
      if (differs(c) && objected(c)) return true;
    }
    return differing_ > 0;
  }

  /// Returns a case with the same dims, other inputs and another layout; half of these have directed inputs.
  Case near(Case c, std::size_t turn) {
    Random random(derive(c.seed, "near") ^ scramble(turn));
    c.seed = random.bits();
    c.strategy =
        op_.directed && random.chance(0.5) ? Strategy::directed : static_cast<Strategy>(random.below(kStrategies));
    if (c.strategy == Strategy::directed && !op_.directed) c.strategy = Strategy::gaussian;
    if (random.chance(0.25)) c.layout = static_cast<Layout>(random.below(kNearLayouts));
    return c;
  }

  void decide_survivor() {
    if (late_ > 0) details_["late"] = late_;
    if (compared_ == 0)
      return decide(MutantStatus::unavailable, {{"why", "the kernel itself takes none of the cases to compare on"}});
    if (differing_ == 0) return decide(MutantStatus::equivalent, {{"compared", compared_}});
    decide(MutantStatus::survivor, {{"compared", compared_},
                                    {"differs", differing_},
                                    {"worst", std::min(worst_, kMost)},
                                    {"worst_of_original", std::min(worst_of_right_, kMost)}});
    details_.update(first_);
  }

  void fill_matrix() {
    json ids = json::array();
    for (const Obligation& obligation : obligations(op_.name))
      for (int number = 0; number < options_.cases; ++number) {
        if (number % draw_spec(obligation.info->by).every != 0) continue;
        const Case c = draw(op_, *obligation.info, options_.seed, static_cast<std::uint64_t>(number),
                            {.in_blocks = traits(right_.backend).blocks})
                           .value();
        if (!fails(obligation, wrong_, c)) continue;
        ids.push_back(obligation.info->id);
        break;
      }
    details_["matrix"] = ids;
  }

  const AutomaticMutant& mutant_;
  const Kernel& wrong_;
  const Kernel& right_;
  const OpDescriptor& op_;
  const StudyOptions& options_;
  Worker& worker_;
  std::optional<MutantStatus> decided_;
  json details_ = json::object();
  bool ended_ = true;
  int cases_ = 0, compared_ = 0, differing_ = 0;
  int late_ = 0;  ///< calls that hung once, and not when repeated
  json first_;    ///< case with different bits
  /// errors relative to the bound, on cases with different bits
  double last_worst_ = 0, worst_ = 0, worst_of_right_ = 0;
};

}  // namespace

json study(const AutomaticMutant& mutant, const StudyOptions& options, Worker& worker) {
  return Study(mutant, options, worker).run();
}

std::vector<json> run_study(const MutantList& mutants, const StudyOptions& options, int jobs,
                            const StudyProgress& progress, int* ended_by) {
  using Batch = std::span<const std::unique_ptr<AutomaticMutant>>;
  // Several batches for each job, since the longest may start last.
  const std::size_t shared = mutants.size() / (kBatchesEach * static_cast<std::size_t>(std::max(jobs, 1)));
  const std::size_t batch = std::min(std::max(shared, kSmallest), static_cast<std::size_t>(std::max(options.batch, 1)));
  std::vector<Task> tasks;
  for (std::size_t begin = 0, end = 0; begin < mutants.size(); begin = end) {
    const Kernel* kernel = mutants[begin]->original;
    while (end < std::min(begin + batch, mutants.size()) && mutants[end]->original == kernel) ++end;
    // Mutants exist before the first worker is forked, so that workers know all of them.
    tasks.push_back({std::string(kernel->id), [batch = Batch(mutants).subspan(begin, end - begin), &options] {
                       Worker worker(call_limit(*batch.front()->original, options.limit));
                       json results = json::array();
                       const json wrong = complaint_of_original(*batch.front()->original, options, worker);
                       for (const auto& mutant : batch)
                         results.push_back(wrong.is_null()
                                               ? study(*mutant, options, worker)
                                               : result_of(*mutant, MutantStatus::unsound, true, Clock::now(), wrong));
                       return results;
                     }});
    tasks.back().died = [batch = Batch(mutants).subspan(begin, end - begin)](int status) {
      const json why{{"why", fmt::format("the process that judged it and {} others ended with wait status {:#x}",
                                         batch.size() - 1, status)}};
      json results = json::array();
      for (const auto& mutant : batch)
        results.push_back(result_of(*mutant, MutantStatus::unsound, false, Clock::now(), why));
      return results;
    };
  }
  std::vector<json> results;
  try {
    run_tasks(tasks, jobs, [&](const json* ended) {
      if (ended != nullptr) results.insert(results.end(), ended->begin(), ended->end());
      progress(results.size());
    });
  } catch (const EndedBySignal& ended) {
    if (ended_by == nullptr) throw;
    *ended_by = ended.signal;
  }
  std::ranges::sort(results, {}, [](const json& m) {
    return std::pair(m["kernel"].get<std::string>(), m["hash"].get<std::string>());
  });
  return results;
}

}  // namespace assay::falsify
