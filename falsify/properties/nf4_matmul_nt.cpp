// Properties of Y = X · Wᵀ with W in NF4 codes (obligations of contracts/nf4_matmul_nt.yaml).
#include "nf4_matmul_nt_obligations.hpp"

#include <algorithm>

#include "falsify/properties/shared/nf4.hpp"
#include "falsify/properties/shared/nf4_products.hpp"

namespace assay::falsify {
namespace nf4_matmul_nt {
namespace {
constexpr Nf4Product kForm = Nf4Product::nt;
}  // namespace
}  // namespace nf4_matmul_nt

void nf4_matmul_nt::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  nf4_exact_codes(problem, kForm, strategy, random);
}

Outcome nf4_matmul_nt::decodes(Trial& trial) { return nf4_decodes(trial, kForm); }
Outcome nf4_matmul_nt::scaling(Trial& trial) { return nf4_scaling(trial, kForm); }
Outcome nf4_matmul_nt::linearity(Trial& trial) { return nf4_linearity(trial, kForm); }
Outcome nf4_matmul_nt::single_row(Trial& trial) { return nf4_single_row(trial, kForm); }
Outcome nf4_matmul_nt::weight_rows(Trial& trial) { return nf4_weight_rows(trial, kForm); }
Outcome nf4_matmul_nt::padding(Trial& trial) { return padding_does_not_matter(trial, 1, trial.the_case().dims[1]); }
Outcome nf4_matmul_nt::equals_dense(Trial& trial) { return nf4_equals_dense(trial, kForm); }
Outcome nf4_matmul_nt::long_sums(Trial& trial) { return nf4_long_sums(trial, kForm); }
Outcome nf4_matmul_nt::infinite_scale(Trial& trial) { return nf4_infinite_scale(trial, kForm); }
Outcome nf4_matmul_nt::large(Trial& trial) { return nf4_large(trial, kForm); }

audit::Subject nf4_matmul_nt::audited() {
  return {.sums = {{.says = "y[0,0] over k",
                    .terms = audit::Terms::values,
                    .dims = {16, 128, 16},
                    .count = 128,
                    .left = {0},
                    .result = {3},
                    .background = [](Problem& p) {
                      std::ranges::fill(p.values[1], 255.0F);
                      std::ranges::fill(p.values[2], 1.0F);
                    }}}};
}

}  // namespace assay::falsify
