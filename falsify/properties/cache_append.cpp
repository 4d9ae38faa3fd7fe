// Properties of cache_append (obligations of contracts/cache_append.yaml).
#include "cache_append_obligations.hpp"

#include <algorithm>

#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {
namespace cache_append {
namespace {

enum Tensor { kX, kLengths, kCache };
enum Dim { kBatch, kRows, kSpare, kHeads, kD };

/// The same sequences with only the new rows [from, to), which stand `from` places later.
Problem part(const Problem& whole, Index from, Index to) {
  Problem p = whole;
  const Index width = whole.dims[kHeads] * whole.dims[kD], rows = whole.dims[kRows];
  p.dims[kRows] = to - from, p.dims[kSpare] += rows - (to - from);
  p.values[kX].clear();
  for (Index b = 0; b < whole.dims[kBatch]; ++b) {
    const auto first = whole.values[kX].begin() + b * rows * width;
    p.values[kX].insert(p.values[kX].end(), first + from * width, first + to * width);
  }
  for (float& length : p.values[kLengths]) length += static_cast<float>(from);
  return p;
}

}  // namespace
}  // namespace cache_append

/// Makes caches empty, or so full that the new rows are the last.
void cache_append::make_inputs(Problem& problem, Strategy, Random& random) {
  const Index spare = problem.dims[kSpare];
  const bool full = random.chance(0.2);
  for (float& length : problem.values[kLengths]) {
    if (full || random.chance(0.3)) length = static_cast<float>(spare);
    else if (random.chance(0.2)) length = 0;
    else if (random.chance(0.3)) length = static_cast<float>(std::min(tile_edge(spare + 1, random), spare));
  }
}

Outcome cache_append::chunks(Trial& trial) {
  std::vector<Index> dims = trial.the_case().dims;  // each part must have a dim for the places of the other
  dims[kSpare] = std::min(dims[kSpare], trial.op().dims[kSpare].max - dims[kRows]);
  const Problem whole = dims == trial.the_case().dims ? trial.problem() : trial.problem(dims);
  const Index rows = whole.dims[kRows], cut = trial.random("cut").between(0, rows);
  const Problem head = part(whole, 0, cut);
  Problem tail = part(whole, cut, rows);
  const Run all = trial.run(whole), first = trial.run(head);
  tail.values[kCache] = first.outputs[0];
  const Run second = trial.run(tail);
  return trial.related(
      compare_bits("cache", whole.shape(kCache), second.outputs[0], all.outputs[0], "rows in two calls, against one"),
      Related::always, {{whole, all}, {tail, second}});
}

Outcome cache_append::batch_slicing(Trial& trial) { return rows_are_independent(trial); }

audit::Subject cache_append::audited() {
  return {.sums = {{.says = "cache[0,0,0,0]",
                    .terms = audit::Terms::values,
                    .dims = {2, 4, 8, 2, 16},
                    .count = 1,
                    .left = {kX},
                    .result = {kCache}}}};
}

}  // namespace assay::falsify
