// Properties of dst = srcᵀ (obligations of contracts/transpose.yaml).
#include "transpose_obligations.hpp"

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

Outcome transpose::involution(Trial& trial) {
  const Problem problem = trial.problem();
  const Run once = trial.run(problem);
  Problem back{&trial.op(), {problem.dims[1], problem.dims[0]}, {}, {once.outputs[0], {}}};
  const Run twice = trial.run(back);
  return compare_bits("dst", back.shape(1), twice.outputs[0], problem.values[0],
                      "transposed twice, against the source");
}

Outcome transpose::block_transposition(Trial& trial) {
  // The transpose of a block of columns is the block of rows of the transpose.
  const Problem whole = trial.problem();
  const Index m = whole.dims[0], n = whole.dims[1];
  Random random = trial.random("block");
  const Index from = random.between(0, n), to = random.between(from, n);
  Problem block{&trial.op(), {m, to - from}, {}, {{}, {}}};
  for (Index i = 0; i < m; ++i)
    for (Index j = from; j < to; ++j) block.values[0].push_back(whole.values[0][static_cast<std::size_t>(i * n + j)]);
  const Run all = trial.run(whole), part = trial.run(block);
  const std::span<const float> rows(all.outputs[0].data() + from * m, static_cast<std::size_t>((to - from) * m));
  Outcome outcome =
      compare_bits("dst", block.shape(1), part.outputs[0], rows, "a block of columns, against the rows of the whole");
  outcome &= trial.against_oracle(Tier::bits, whole, all);
  return outcome;
}

audit::Subject transpose::audited() {
  return {.sums = {{.says = "dst[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 64},
                    .count = 1,
                    .left = {0},
                    .result = {1}}}};
}

}  // namespace assay::falsify
