// Properties of C = A · B (obligations of contracts/matmul.yaml).
#include "matmul_obligations.hpp"

#include "falsify/properties/shared/products.hpp"

namespace assay::falsify {
namespace matmul {
namespace {
constexpr ProductForm kForm{.a_transposed = false, .b_transposed = false};
}  // namespace
}  // namespace matmul

Outcome matmul::identity(Trial& trial) { return product_identity(trial, kForm); }
Outcome matmul::scaling(Trial& trial) { return product_scaling(trial, kForm); }
Outcome matmul::row_permutation(Trial& trial) { return product_row_permutation(trial, kForm); }
Outcome matmul::linearity(Trial& trial) { return product_linearity(trial, kForm); }
Outcome matmul::transposition(Trial& trial) { return product_transposition(trial, kForm); }
Outcome matmul::block_additivity(Trial& trial) { return product_block_additivity(trial, kForm); }
Outcome matmul::large(Trial& trial) { return product_large(trial, kForm); }

audit::Subject matmul::audited() {
  return {.sums = {{.says = "c[0,0] over k",
                    .terms = audit::Terms::products,
                    .dims = {16, 64, 16},
                    .count = 64,
                    .left = {0},
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
