#include "falsify/properties/shared/matrices.hpp"

#include <algorithm>

namespace assay::falsify {

Outcome rows_alone(Trial& trial, const Problem& whole, bool exact) {
  const OpDescriptor& op = trial.op();
  const Index extent = whole.dims[0];
  Random random = trial.random("rows");
  const Index from = random.between(0, extent), to = random.between(from, extent);
  std::vector<Index> more = whole.dims;
  ++more[0];
  const auto batched = [&](int t) {
    return whole.shape(t)[0] == extent && op.tensors[static_cast<std::size_t>(t)].shape(more)[0] != extent;
  };
  const auto cut = [&](int t, const auto& values) {
    const Index each = extent == 0 ? 0 : whole.shape(t).size() / extent;
    return std::decay_t<decltype(values)>(values.begin() + from * each, values.begin() + to * each);
  };
  Problem part = whole;
  part.dims[0] = to - from;
  for (int t : inputs_of(op))
    if (batched(t)) part.values[static_cast<std::size_t>(t)] = cut(t, whole.values[static_cast<std::size_t>(t)]);
  const Run all = trial.run(whole), alone = trial.run(part);
  const auto bounds = trial.oracle(part);
  Outcome outcome;
  const std::vector<int> outputs = outputs_of(op);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (!batched(outputs[o])) continue;
    std::vector<double> bound = bounds_of(bounds[o]);
    if (exact) std::ranges::fill(bound, 0.0);
    else
      for (double& b : bound) b *= 2;
    outcome &= compare_within(op.tensors[static_cast<std::size_t>(outputs[o])].name, part.shape(outputs[o]),
                              widened(alone.outputs[o]), widened(cut(outputs[o], all.outputs[o])), bound);
  }
  return outcome;
}

}  // namespace assay::falsify
