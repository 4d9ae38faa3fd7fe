// Properties of fill (obligations of contracts/fill.yaml).
#include "fill_obligations.hpp"

namespace assay::falsify {

Outcome fill::zero(Trial& trial) {
  const Problem own = trial.problem();
  Problem zero = own;
  zero.params[0] = 0;
  const Run cleared = trial.run(zero);
  const std::vector<float> want(cleared.outputs[0].size(), 0.0F);
  Outcome outcome = compare_bits("y", zero.shape(0), cleared.outputs[0], want, "filled with 0, against +0");
  outcome &= trial.against_oracle(trial.strictest(), own, trial.run(own));
  return outcome;
}

audit::Subject fill::audited() { return {.no_sums = "it adds nothing"}; }

}  // namespace assay::falsify
