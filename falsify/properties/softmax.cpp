// Properties of softmax (obligations of contracts/softmax.yaml).
#include "softmax_obligations.hpp"

#include <cfloat>
#include <cmath>

#include "falsify/properties/shared/losses.hpp"
#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

/// Makes rows of several kinds: all entries far below 0; a gap above 88, beyond which an unshifted exponential
/// overflows; the maximum last, or growing along the row, so that online kernels rescale at every tile; ties; logits of
/// the largest magnitude; wide logits; masked entries; few dominant entries far apart, so that an error of each shows
/// in a row of any length.
void softmax::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy == Strategy::runs) tile_rows(problem.values[0], problem.dims[0], problem.dims[1], random);
  if (strategy != Strategy::directed) return;
  const Index rows = problem.dims[0], n = problem.dims[1];
  for (Index i = 0; i < rows; ++i) {
    float* const x = problem.values[0].data() + i * n;
    switch (random.below(9)) {
      case 0: x[n - 1] = static_cast<float>(89 + 20 * random.uniform()); break;
      case 1: x[n - 1] = 6; break;
      case 2:
        for (Index j = 0; j < n; ++j) x[j] = static_cast<float>(j) * 0.25F;
        break;
      case 3:
        for (Index j = 0; j < n; ++j) x[j] = static_cast<float>(random.below(2)) * 3;
        break;
      case 4:
        for (Index j = 0; j < n; ++j) x[j] = random.chance(0.5) ? FLT_MAX : -FLT_MAX;
        break;
      case 5:
        for (Index j = 0; j < n; ++j) x[j] *= 30;
        break;
      case 6: {
        const SparseLogits few(n, random);
        for (Index j = 0; j < n; ++j) x[j] = static_cast<float>(few(random));
        break;
      }
      case 7: {
        const double far = -random.by_magnitude(7, 120);
        for (Index j = 0; j < n; ++j) x[j] = static_cast<float>(far + static_cast<double>(x[j]));
        break;
      }
      default:
        for (Index j = 0; j < n; ++j)
          if (random.chance(0.5)) x[j] = -INFINITY;
    }
  }
}

Outcome softmax::masking(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  const Index rows = problem.dims[0], n = problem.dims[1];
  Random random = trial.random("mask");
  for (Index i = 0; i < rows; ++i) {
    float* const x = problem.values[0].data() + i * n;
    const auto kind = random.below(5);
    const double masked = kind == 0 ? 1 : kind == 1 ? 0.9 : 0.3;
    for (Index j = 0; j < n; ++j)
      if (random.chance(masked)) x[j] = -INFINITY;
    if (kind == 3) x[random.below(static_cast<std::uint64_t>(n))] = random.chance(0.5) ? NAN : INFINITY;
    if (kind == 4) {  // NaN alone among masked entries
      for (Index j = 0; j < n; ++j) x[j] = -INFINITY;
      x[random.below(static_cast<std::uint64_t>(n))] = NAN;
    }
  }
  return trial.against_oracle(Tier::worst_case, problem, trial.run(problem));
}

Outcome softmax::slicing(Trial& trial) { return rows_are_independent(trial); }
Outcome softmax::permutation(Trial& trial) { return columns_permute(trial, "n"); }

Outcome softmax::shift(Trial& trial) {
  Problem plain = trial.problem();
  Random random = trial.random("shift");
  for (float& x : plain.values[0]) x = static_cast<float>(static_cast<int>(random.between(-40, 8)));
  Problem shifted = plain;
  // So far that the sums of the integers are stored exactly.
  const Index far = plain.storage == DType::f16 ? 2000 : plain.storage == DType::bf16 ? 200 : 100'000;
  const auto by = static_cast<float>(random.between(-far, far));
  for (float& x : shifted.values[0]) x += by;
  const Run run = trial.run(plain), other = trial.run(shifted);
  Outcome outcome = trial.related(
      compare_bits("y", plain.shape(1), other.outputs[0], run.outputs[0], "logits shifted, against those at rest"),
      Related::always, {{plain, run}, {shifted, other}});
  outcome &= trial.against_oracle(Tier::worst_case, plain, run);
  return outcome;
}

audit::Subject softmax::audited() {
  return {.sums = {{.says = "the denominator of y[0,31] over n",
                    .terms = audit::Terms::exponentials,
                    .dims = {4, 32},
                    .count = 31,
                    .left = {0},
                    .result = {1, 31},
                    // next to which the sum shows; not part of it
                    .background = [](Problem& p) { p.values[0][static_cast<std::size_t>(p.dims[1]) - 1] = -22; }},
                   {.says = "y[0,0]",
                    .terms = audit::Terms::exponentials,
                    .dims = {4, 32},
                    .count = 1,
                    .left = {0},
                    .result = {1}}}};
}

}  // namespace assay::falsify
