// Properties of C = A · Bᵀ (obligations of contracts/matmul_nt.yaml).
#include "matmul_nt_obligations.hpp"

#include "falsify/properties/shared/products.hpp"

namespace assay::falsify {
namespace matmul_nt {
namespace {
constexpr ProductForm kForm{.a_transposed = false, .b_transposed = true};
}  // namespace
}  // namespace matmul_nt

Outcome matmul_nt::identity(Trial& trial) { return product_identity(trial, kForm); }
Outcome matmul_nt::scaling(Trial& trial) { return product_scaling(trial, kForm); }
Outcome matmul_nt::row_permutation(Trial& trial) { return product_row_permutation(trial, kForm); }
Outcome matmul_nt::linearity(Trial& trial) { return product_linearity(trial, kForm); }
Outcome matmul_nt::transposition(Trial& trial) { return product_transposition(trial, kForm); }
Outcome matmul_nt::block_additivity(Trial& trial) { return product_block_additivity(trial, kForm); }
Outcome matmul_nt::large(Trial& trial) { return product_large(trial, kForm); }
Outcome matmul_nt::equals_matmul(Trial& trial) { return product_equals_matmul(trial, kForm); }

audit::Subject matmul_nt::audited() {
  return {.sums = {{.says = "c[0,0] over k",
                    .terms = audit::Terms::products,
                    .dims = {16, 64, 16},
                    .count = 64,
                    .left = {0},
                    .right = {1},
                    .result = {2}},
                   {.says = "c[0,0] of a single row over k",
                    .terms = audit::Terms::products,
                    .dims = {1, 64, 7},
                    .count = 64,
                    .left = {0},
                    .right = {1},
                    .result = {2}}}};
}

}  // namespace assay::falsify
