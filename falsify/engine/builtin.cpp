// The engine's own checks, available to every operation: `by: frame`, `differential`, `exact`, `nonfinite`,
// `determinism`, `postconditions`.
#include <fmt/format.h>

#include <algorithm>

#include "falsify/engine/draw.hpp"
#include "falsify/engine/joint.hpp"
#include "falsify/engine/obligation.hpp"
#include "falsify/engine/trial.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify::builtin {
namespace {

/// Returns other dims of the same operation: every dim changed where its range allows it. The new shape is smaller if
/// the case has a joint shape, or if the oracle of a larger shape costs more than kAffordable: with one long dim, a
/// small increase of all dims multiplies the cost.
std::vector<Index> other_dims(const Trial& trial) {
  const std::vector<Index>& own = trial.the_case().dims;
  const auto changed = [&](bool smaller) {
    std::vector<Index> dims = own;
    Random random = trial.random("other dims");
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const DimInfo& info = trial.op().dims[d];
      const Index step = random.between(1, 7);
      const Index by = step * info.multiple;
      if (smaller) dims[d] = std::max(std::max<Index>(info.min, 1), dims[d] - by);
      else dims[d] = dims[d] + by <= info.max ? dims[d] + by : std::max(info.min, dims[d] - by);
    }
    make_valid(trial.op(), dims);
    return dims;
  };
  std::vector<Index> larger = changed(false);
  return is_joint(trial.op(), own) || oracle_cost(trial.op(), larger) > kAffordable ? changed(true) : larger;
}

Outcome same_bits(const Trial& trial, const Problem& problem, const Run& got, const Run& want,
                  std::string_view meaning) {
  Outcome outcome;
  const std::vector<int> outputs = outputs_of(trial.op());
  for (std::size_t o = 0; o < outputs.size(); ++o)
    outcome &= compare_bits(trial.op().tensors[static_cast<std::size_t>(outputs[o])].name, problem.shape(outputs[o]),
                            got.outputs[o], want.outputs[o], meaning);
  return outcome;
}

/// For each kind of call that the kernel declares to reject: makes calls with one forbidden value until one is not
/// rejected.
Outcome rejections(Trial& trial, const Problem& problem) {
  Outcome outcome;
  Random random = trial.random("forbidden");
  const auto try_one = [&](const Problem& bad, const std::string& what) {
    if (outcome.kind != Outcome::Kind::passed) return;
    if (const auto judged = trial.reject(bad, what)) outcome &= *judged;
  };
  for (const std::string& name : trial.kernel().limits->rejects) {
    for (std::size_t t = 0; t < problem.op->tensors.size(); ++t) {
      const TensorInfo& info = problem.op->tensors[t];
      if (info.name != name || problem.values[t].empty()) continue;
      for (const Index value : {info.least(problem.dims) - 1, info.most(problem.dims) + 1}) {
        Problem bad = problem;
        const std::size_t at = random.below(bad.values[t].size());
        bad.values[t][at] = static_cast<float>(value);
        try_one(bad, fmt::format("{}[{}] = {}", name, at, value));
      }
    }
    for (std::size_t d = 0; d < problem.dims.size(); ++d) {
      if (problem.op->dims[d].name != name) continue;
      std::vector<Index> dims = problem.dims;
      dims[d] = problem.op->dims[d].min - 1;
      if (dims[d] >= 0) try_one(trial.problem(dims), fmt::format("{} = {}", name, dims[d]));
    }
    for (std::size_t p = 0; p < problem.op->params.size(); ++p) {
      const ParamInfo& info = problem.op->params[p];
      if (info.name != name) continue;
      for (const double value : {info.min - 1, 2 * info.max + 1}) {
        Problem bad = problem;
        bad.params[p] = value;
        try_one(bad, fmt::format("{} = {}", name, value));
      }
    }
  }
  return outcome;
}

/// Number of the further runs that run under load (threads that compete for the processors).
constexpr int kLoadedRuns = 4;

/// Returns the number of runs of the same input beyond two. Only some runs reveal a varying order of additions; the
/// number keeps the cost about equal for all sizes. None on Vulkan, nor on cuda-host, which runs a device's threads
/// sequentially in an order that the case decides.
int further_runs(const Trial& trial, const Problem& problem) {
  if (traits(trial.kernel().backend).same_order) return 0;
  double work = 1;
  for (const Index dim : problem.dims) work *= static_cast<double>(std::max<Index>(dim, 1));
  for (std::size_t t = 0; t < problem.values.size(); ++t)
    work += 4 * static_cast<double>(problem.shape(static_cast<int>(t)).size());
  constexpr double kWork = 1 << 17;
  constexpr int kMost = 8;
  return std::clamp(static_cast<int>(kWork / work), 1, kMost);
}

/// True if an ensures clause or certificate reads elements of this tensor.
bool read_on_return(const OpDescriptor& op, int tensor) {
  return std::ranges::any_of(op.clauses, [&](const ClauseInfo& clause) {
    return clause.kind != ClauseKind::requires_clause && std::ranges::count(clause.reads, tensor) > 0;
  });
}

}  // namespace

Outcome frame(Trial& trial) {
  const Problem problem = trial.problem();
  const Run over_finite = trial.run(problem, Poison::finite);
  const Run over_nan = trial.run(problem, Poison::nan);
  Outcome outcome = trial.against_oracle(trial.strictest(), problem, over_finite);
  outcome &= trial.related(
      same_bits(trial, problem, over_nan, over_finite, "the result depends on what the output held before"),
      Related::always, {{problem, over_finite}, {problem, over_nan}});
  const Limits* const limits = trial.kernel().limits;
  if (outcome.kind == Outcome::Kind::passed && limits != nullptr && !limits->rejects.empty())
    outcome &= rejections(trial, problem);
  return outcome;
}

Outcome differential(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  return trial.against_oracle(trial.strictest(), problem, run);
}

Outcome exact(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  // Shrunk values have no strategy: they remain exact in float32 but may not be exact in narrower formats.
  const bool drawn = problem.exact || problem.integers_kept || trial.op().copies;
  return trial.against_oracle(drawn ? trial.tier(problem) : trial.exact_tier(), problem, run);
}

Outcome nonfinite(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  return trial.against_oracle(trial.strictest(), problem, run) &= trial.against_copies(problem, run);
}

Outcome determinism(Trial& trial) {
  const Problem problem = trial.problem();
  const Problem other = trial.problem(other_dims(trial));
  const Run first = trial.run(problem);
  const Run between = trial.run(other);
  const Run second = trial.run(problem);
  Outcome outcome = trial.against_oracle(trial.strictest(), other, between);
  outcome &= trial.related(same_bits(trial, problem, second, first, "two runs on the same input differ"),
                           Related::always, {{problem, first}, {problem, second}});
  if (!trial.kernel().deterministic) return outcome;
  const int more = further_runs(trial, problem);
  for (int run = 0; run < more && outcome.kind == Outcome::Kind::passed; ++run) {
    const bool loaded = run < kLoadedRuns;
    const Run again = trial.run(problem, loaded ? BackgroundLoad::load : BackgroundLoad::nothing);
    Outcome same = same_bits(trial, problem, again, first,
                             loaded ? "two runs on the same input differ, one of them beside other work"
                                    : "two runs on the same input differ");
    if (same.kind == Outcome::Kind::falsified) outcome &= same;  // do not count the same elements again
  }
  return outcome;
}

// An obligation of its own: evaluated under every obligation, certificates would answer first and hide which obligation
// catches what.
Outcome postconditions(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem, Poison::finite, contract::Level::full);
  // The certificates hold, or `run` would have thrown: the outputs that they read count as compared.
  Outcome outcome;
  const std::vector<int> outputs = outputs_of(trial.op());
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (read_on_return(trial.op(), outputs[o]))
      for (float x : run.outputs[o]) ++outcome.elements, outcome.nonzero += x != 0;
  return outcome;
}

namespace {

using enum Strategy;

const CheckDraws kDraws[] = {
    {"frame", {.directed = true, .oracle_use = OracleUse::sample}},
    {"differential",
     {.strategies = {one_hot, distinct_index, exact_integers, gaussian, same_sign, cancellation, graded, dominant,
                     subnormal, huge, signed_zeros},
      .directed = true,
      .every_region = true,
      .fills = Turn{4, 2},
      .oracle_use = OracleUse::sample}},
    // Sums of integers are exact however long they are, and cost little.
    {"exact",
     {.strategies = {one_hot, distinct_index, exact_integers},
      .far_every = 4,
      .far_strategy = exact_integers,
      .fills = Turn{4, 2},
      .oracle_use = OracleUse::sample}},
    {"nonfinite", {.strategies = {Strategy::nonfinite}, .fills = Turn{16, 6}, .oracle_use = OracleUse::sample}},
    {"determinism", {.directed = true, .oracle_use = OracleUse::sample}},
    {"postconditions",
     {.strategies = {one_hot, exact_integers, gaussian, same_sign, cancellation, graded, dominant, subnormal, huge,
                     signed_zeros, Strategy::nonfinite},
      .directed = true,
      .oracle_use = OracleUse::none}},
};

}  // namespace

}  // namespace assay::falsify::builtin
