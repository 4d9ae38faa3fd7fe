// The checks that every operation gets: `by: frame`, `differential`, `exact`, `statistical`, `nonfinite`,
// `determinism`, `postconditions`.
#include <fmt/format.h>

#include <algorithm>

#include "falsify/audit/confirm.hpp"
#include "falsify/audit/judge.hpp"
#include "falsify/engine/joint.hpp"
#include "falsify/engine/obligation.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify::builtin {
namespace {

/// Another shape of the same operation: every dim changed where its range allows it. One of a joint shape is smaller.
std::vector<Index> other_dims(const Trial& trial) {
  std::vector<Index> dims = trial.the_case().dims;
  Random random = trial.random("other dims");
  const bool joint = is_joint(trial.op(), dims);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const DimInfo& info = trial.op().dims[d];
    const Index step = random.between(1, 7);
    const Index by = step * info.multiple;
    if (joint) dims[d] = std::max(std::max<Index>(info.min, 1), dims[d] - by);
    else dims[d] = dims[d] + by <= info.max ? dims[d] + by : std::max(info.min, dims[d] - by);
  }
  make_valid(trial.op(), dims);
  return dims;
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

}  // namespace

Outcome frame(Trial& trial) {
  const Problem problem = trial.problem();
  const Run over_finite = trial.run(problem, Poison::finite);
  const Run over_nan = trial.run(problem, Poison::nan);
  Outcome outcome = trial.against_oracle(strictest(trial.op()), problem, over_finite);
  if (trial.kernel().deterministic)
    outcome &= same_bits(trial, problem, over_nan, over_finite, "the result depends on what the output held before");
  else
    outcome &= trial.against_oracle(strictest(trial.op()), problem, over_nan);
  return outcome;
}

Outcome differential(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  return trial.against_oracle(strictest(trial.op()), problem, run);
}

Outcome exact(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  return trial.against_oracle(trial.op().copies ? Tier::bits : Tier::exact, problem, run);
}

Outcome statistical(Trial& trial) {
  if (!audit::statistical_tier_used(trial.kernel().arithmetic))
    return Outcome::not_applicable("the kernel declares accumulation that does not round to nearest");
  if (const auto why = audit::contradicts_nearest(trial)) return Outcome::falsify({"rounding", *why, "", {}, 0, 0, 0});
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  return trial.against_oracle(Tier::statistical, problem, run);
}

Outcome nonfinite(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  return trial.against_oracle(strictest(trial.op()), problem, run);
}

Outcome determinism(Trial& trial) {
  const Problem problem = trial.problem();
  const Problem other = trial.problem(other_dims(trial));
  const Run first = trial.run(problem);
  const Run between = trial.run(other);
  const Run second = trial.run(problem);
  Outcome outcome = trial.against_oracle(strictest(trial.op()), other, between);
  if (trial.kernel().deterministic)
    outcome &= same_bits(trial, problem, second, first, "two runs on the same input differ");
  else
    outcome &= trial.against_oracle(strictest(trial.op()), problem, second);
  return outcome;
}

Outcome postconditions(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem, Poison::finite, contract::Level::full);
  // The certificates have spoken; what is counted here is what they covered.
  Outcome outcome;
  for (const std::vector<float>& output : run.outputs)
    for (float x : output) ++outcome.elements, outcome.nonzero += x != 0;
  return outcome;
}

}  // namespace assay::falsify::builtin
