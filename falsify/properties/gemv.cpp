// Properties of y = A · x (obligations of contracts/gemv.yaml).
#include "gemv_obligations.hpp"

#include "falsify/properties/shared/products.hpp"

namespace assay::falsify {

Outcome gemv::identity(Trial& trial) { return product_identity_of_vector(trial); }
Outcome gemv::scaling(Trial& trial) { return product_scaling(trial, {}); }
Outcome gemv::row_permutation(Trial& trial) { return product_row_permutation(trial, {}); }
Outcome gemv::linearity(Trial& trial) { return product_linearity(trial, {}); }
Outcome gemv::block_additivity(Trial& trial) { return product_block_additivity(trial, {}); }
Outcome gemv::large(Trial& trial) { return product_large(trial, {}); }
Outcome gemv::equals_matmul(Trial& trial) { return product_equals_matmul(trial, {}); }

audit::Subject gemv::audited() {
  return {.sums = {{.says = "y[0] over k",
                    .terms = audit::Terms::products,
                    .dims = {16, 128},
                    .count = 128,
                    .left = {0},
                    .right = {1},
                    .result = {2}}}};
}

}  // namespace assay::falsify
