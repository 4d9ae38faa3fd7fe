// Properties of merged - alpha / r B · A (obligations of contracts/lora_unmerge.yaml).
#include "falsify/properties/shared/lora.hpp"
#include "lora_unmerge_obligations.hpp"

namespace assay::falsify {

Outcome lora_unmerge::exact_at_whole_scales(Trial& trial) { return adapter_exact(trial); }
Outcome lora_unmerge::scaling(Trial& trial) { return adapter_scaling(trial); }
Outcome lora_unmerge::row_slices(Trial& trial) { return adapter_row_slices(trial); }
Outcome lora_unmerge::zero_b(Trial& trial) { return adapter_zero_b(trial); }
Outcome lora_unmerge::round_trip(Trial& trial) { return adapter_round_trip(trial); }
Outcome lora_unmerge::rank_doubled(Trial& trial) { return adapter_rank_doubled(trial); }
Outcome lora_unmerge::ranks_add(Trial& trial) { return adapter_ranks_add(trial); }
Outcome lora_unmerge::transposition(Trial& trial) { return adapter_transposition(trial); }
Outcome lora_unmerge::large(Trial& trial) { return adapter_large(trial, -1.0f); }

audit::Subject lora_unmerge::audited() {
  return {.sums = {{.says = "weight[0,0] over r",
                    .terms = audit::Terms::products,
                    .dims = {16, 16, 64},
                    .count = 64,
                    .left = {2},
                    .right = {1, 0, 16},
                    .result = {3},
                    .scale = -1,
                    .background = [](Problem& p) { p.params[0] = static_cast<double>(p.dims[2]); }}}};
}

}  // namespace assay::falsify
