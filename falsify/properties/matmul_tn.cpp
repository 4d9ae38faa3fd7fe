// Properties of C = Aᵀ · B (obligations of contracts/matmul_tn.yaml).
#include "matmul_tn_obligations.hpp"

#include "falsify/properties/shared/products.hpp"

namespace assay::falsify {
namespace matmul_tn {
namespace {
constexpr ProductForm kForm{.a_transposed = true, .b_transposed = false};
}  // namespace
}  // namespace matmul_tn

Outcome matmul_tn::identity(Trial& trial) { return product_identity(trial, kForm); }
Outcome matmul_tn::scaling(Trial& trial) { return product_scaling(trial, kForm); }
Outcome matmul_tn::row_permutation(Trial& trial) { return product_row_permutation(trial, kForm); }
Outcome matmul_tn::linearity(Trial& trial) { return product_linearity(trial, kForm); }
Outcome matmul_tn::transposition(Trial& trial) { return product_transposition(trial, kForm); }
Outcome matmul_tn::block_additivity(Trial& trial) { return product_block_additivity(trial, kForm); }
Outcome matmul_tn::large(Trial& trial) { return product_large(trial, kForm); }
Outcome matmul_tn::equals_matmul(Trial& trial) { return product_equals_matmul(trial, kForm); }

audit::Subject matmul_tn::audited() {
  return {.sums = {{.says = "c[0,0] over k",
                    .terms = audit::Terms::products,
                    .dims = {16, 64, 16},
                    .count = 64,
                    .left = {0, 0, 16},
                    .right = {1, 0, 16},
                    .result = {2}},
                   {.says = "c[0,0] of a single row over k",
                    .terms = audit::Terms::products,
                    .dims = {1, 64, 7},
                    .count = 64,
                    .left = {0},
                    .right = {1, 0, 7},
                    .result = {2}}}};
}

}  // namespace assay::falsify
