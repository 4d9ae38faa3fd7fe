// Properties of DX = DY · W with W in NF4 codes (obligations of contracts/nf4_matmul.yaml).
#include "nf4_matmul_obligations.hpp"

#include <algorithm>

#include "falsify/properties/shared/nf4.hpp"
#include "falsify/properties/shared/nf4_products.hpp"

namespace assay::falsify {
namespace nf4_matmul {
namespace {
constexpr Nf4Product kForm = Nf4Product::plain;
}  // namespace
}  // namespace nf4_matmul

void nf4_matmul::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  nf4_exact_codes(problem, kForm, strategy, random);
}

Outcome nf4_matmul::decodes(Trial& trial) { return nf4_decodes(trial, kForm); }
Outcome nf4_matmul::scaling(Trial& trial) { return nf4_scaling(trial, kForm); }
Outcome nf4_matmul::linearity(Trial& trial) { return nf4_linearity(trial, kForm); }
Outcome nf4_matmul::single_row(Trial& trial) { return nf4_single_row(trial, kForm); }
Outcome nf4_matmul::weight_rows(Trial& trial) { return nf4_weight_rows(trial, kForm); }
Outcome nf4_matmul::padding(Trial& trial) { return padding_does_not_matter(trial, 1, trial.the_case().dims[2]); }
Outcome nf4_matmul::equals_dense(Trial& trial) { return nf4_equals_dense(trial, kForm); }
Outcome nf4_matmul::long_sums(Trial& trial) { return nf4_long_sums(trial, kForm); }
Outcome nf4_matmul::infinite_scale(Trial& trial) { return nf4_infinite_scale(trial, kForm); }
Outcome nf4_matmul::large(Trial& trial) { return nf4_large(trial, kForm); }

audit::Subject nf4_matmul::audited() {
  return {.sums = {{.says = "dx[0,0] over n",
                    .terms = audit::Terms::values,
                    .dims = {16, 64, 64},
                    .count = 64,
                    .left = {0},
                    .result = {3},
                    .background = [](Problem& p) {
                      std::ranges::fill(p.values[1], 255.0F);
                      std::ranges::fill(p.values[2], 1.0F);
                    }}}};
}

}  // namespace assay::falsify
