// Properties of dst = src between layouts (obligations of contracts/tensor_layout.yaml).
#include "tensor_layout_obligations.hpp"

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

Outcome tensor_layout::round_trip(Trial& trial) {
  const Problem there = trial.problem();
  const Run packed = trial.run(there);
  Problem back = there;
  back.values[0] = packed.outputs[0];
  const Run again = trial.run(back);
  return compare_bits("dst", there.shape(1), again.outputs[0], there.values[0], "copied twice, against the source");
}

audit::Subject tensor_layout::audited() {
  return {.sums = {{.says = "dst[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 64},
                    .count = 1,
                    .left = {0},
                    .result = {1}}}};
}

}  // namespace assay::falsify
