// Properties of weight + alpha / r B · A (obligations of contracts/lora_merge.yaml).
#include "falsify/properties/shared/lora.hpp"
#include "lora_merge_obligations.hpp"

namespace assay::falsify {

Outcome lora_merge::exact_at_whole_scales(Trial& trial) { return adapter_exact(trial); }
Outcome lora_merge::scaling(Trial& trial) { return adapter_scaling(trial); }
Outcome lora_merge::row_slices(Trial& trial) { return adapter_row_slices(trial); }
Outcome lora_merge::zero_b(Trial& trial) { return adapter_zero_b(trial); }
Outcome lora_merge::round_trip(Trial& trial) { return adapter_round_trip(trial); }
Outcome lora_merge::rank_doubled(Trial& trial) { return adapter_rank_doubled(trial); }
Outcome lora_merge::ranks_add(Trial& trial) { return adapter_ranks_add(trial); }
Outcome lora_merge::transposition(Trial& trial) { return adapter_transposition(trial); }
Outcome lora_merge::large(Trial& trial) { return adapter_large(trial, 1.0f); }

audit::Subject lora_merge::audited() {
  return {.sums = {{.says = "merged[0,0] over r",
                    .terms = audit::Terms::products,
                    .dims = {16, 16, 64},
                    .count = 64,
                    .left = {2},
                    .right = {1, 0, 16},
                    .result = {3},
                    .scale = 1,
                    .background = [](Problem& p) { p.params[0] = static_cast<double>(p.dims[2]); }}}};
}

}  // namespace assay::falsify
