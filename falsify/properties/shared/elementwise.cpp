#include "falsify/properties/shared/elementwise.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/engine/joint.hpp"

namespace assay::falsify {
namespace {

bool batched(const TensorInfo& info, const OpDescriptor& op) {
  const std::string_view axes = info.shape_text, first = op.dims[0].name;
  return axes.substr(1, first.size()) == first && (axes[first.size() + 1] == ',' || axes[first.size() + 1] == ']');
}

/// Returns the elements of indices [from, to) of the first axis.
std::vector<float> cut(const std::vector<float>& values, Index extent, Index from, Index to) {
  const Index each = extent == 0 ? 0 : static_cast<Index>(values.size()) / extent;
  return {values.begin() + from * each, values.begin() + to * each};
}

/// Number of elements from which kernels may take another path: more than drawn dims give.
constexpr Index kLargeOutput = Index{1} << 21;
/// Number of rows that may take a block each: twice the limit of a grid's y and z; 2 s on cuda-host.
constexpr Index kMaxInBlocks = Index{1} << 17;

/// Raises the first dim until the largest output has kLargeOutput elements, with no tensor more than four times as
/// large.
std::vector<Index> enlarged(const OpDescriptor& op, std::vector<Index> dims, bool in_blocks) {
  Index outputs = 1, all = 1;
  for (Index& d : dims) d = std::max<Index>(d, 1);
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    if (!batched(op.tensors[t], op)) continue;
    const Index each = op.tensors[t].shape(dims).size() / dims[0];
    all = std::max(all, each);
    if (op.tensors[t].role != Role::in) outputs = std::max(outputs, each);
  }
  const Index rows = std::min(kLargeOutput / outputs + 1, 4 * kLargeOutput / all);
  dims[0] = std::clamp(in_blocks ? std::min(rows, kMaxInBlocks) : rows, op.dims[0].min, op.dims[0].max);
  return dims;
}

}  // namespace

Outcome scales_with(Trial& trial, std::initializer_list<int> inputs, std::optional<Strategy> strategy) {
  const Problem problem = strategy ? trial.problem(*strategy) : trial.problem();
  Problem scaled = problem;
  Random random = trial.random("scaling");
  const int exponent = static_cast<int>(random.either_sign(static_cast<double>(random.between(1, 6))));
  for (int t : inputs)
    for (float& x : scaled.values[static_cast<std::size_t>(t)]) x = std::ldexp(x, exponent);
  return trial.scales(problem, scaled, std::vector<int>(outputs_of(trial.op()).size(), exponent));
}

Outcome independent_of_batch(Trial& trial, Sizes sizes) {
  const OpDescriptor& op = trial.op();
  Random random = trial.random("batch");
  const bool large = random.chance(1.0 / 16) && sizes == Sizes::enlarged;
  const Problem whole = large
                            ? trial.problem(enlarged(op, trial.the_case().dims, traits(trial.kernel().backend).blocks))
                            : trial.problem();
  const Index extent = whole.dims[0], from = random.between(0, extent), to = random.between(from, extent);
  Problem part = whole;
  part.dims[0] = std::max(to - from, op.dims[0].min);
  const Tier tier = trial.strictest();
  if (part.dims[0] != to - from) return trial.against_oracle(tier, whole, trial.run(whole));
  for (std::size_t t = 0; t < op.tensors.size(); ++t)
    if (batched(op.tensors[t], op) && !whole.values[t].empty()) part.values[t] = cut(whole.values[t], extent, from, to);
  const Run all = trial.run(whole), alone = trial.run(part);
  Outcome outcome = trial.against_oracle(tier, whole, all), bits;
  const std::vector<int> outputs = outputs_of(op);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    bits &=
        compare_bits(op.tensors[static_cast<std::size_t>(outputs[o])].name, part.shape(outputs[o]), alone.outputs[o],
                     cut(all.outputs[o], extent, from, to), "a part of the batch, against the whole");
  return outcome &= trial.related(std::move(bits), Related::by_batch, {{whole, all}, {part, alone}});
}

Outcome rows_add_up(Trial& trial, std::size_t output) {
  const Problem whole = trial.problem();
  const Index m = whole.dims[0], n = whole.dims[1];
  Random random = trial.random("split");
  const Index cut = random.between(0, m);
  Problem head = whole, tail = whole;
  head.dims[0] = cut;
  head.values[0].resize(static_cast<std::size_t>(cut * n));
  tail.dims[0] = m - cut;
  tail.values[0].erase(tail.values[0].begin(), tail.values[0].begin() + cut * n);
  std::vector<double> parts(static_cast<std::size_t>(n)), bound = bounds_of(trial.oracle(whole)[output]);
  for (const Problem* part : {&head, &tail}) {
    const Run run = trial.run(*part);
    const std::vector<double> own = bounds_of(trial.oracle(*part)[output]);
    for (std::size_t j = 0; j < parts.size(); ++j) {
      parts[j] += static_cast<double>(run.outputs[output][j]);
      bound[j] += own[j];
    }
  }
  const int tensor = outputs_of(trial.op())[output];
  return compare_within(trial.op().tensors[static_cast<std::size_t>(tensor)].name, whole.shape(tensor),
                        widened(trial.run(whole).outputs[output]), parts, bound);
}

void keep_sums_exact(std::vector<float>& values, Index terms) {
  const Index limit = std::max<Index>(1, (Index{1} << 24) / std::max<Index>(1, terms));
  for (float& x : values) x = static_cast<float>((static_cast<Index>(x) - 1) % limit + 1);
}

}  // namespace assay::falsify
