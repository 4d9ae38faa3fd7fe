// Properties of q = the NF4 code of x / absmax (obligations of contracts/nf4_quantize.yaml).
#include "nf4_quantize_obligations.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "falsify/properties/shared/elementwise.hpp"
#include "falsify/properties/shared/nf4.hpp"

namespace assay::falsify {
namespace nf4_quantize {
namespace {

/// Calls f(row, first column, one past the last) for every block.
template <class F>
void for_each_block(Index n, Index k, F f) {
  for (Index j = 0; j < n; ++j)
    for (Index from = 0; from < k; from += kNf4Block) f(j, from, std::min(k, from + kNf4Block));
}

/// Makes blocks whose largest element is `scale()`, of either sign, and whose other elements are midpoints times it, or
/// adjacent floats. Stores the right codes of the other elements in `codes`.
template <class F>
std::vector<float> around_midpoints(Index n, Index k, Random& random, F scale, std::vector<unsigned>* codes = nullptr) {
  std::vector<float> x(static_cast<std::size_t>(n * k));
  if (codes != nullptr) codes->assign(x.size(), 0);
  for_each_block(n, k, [&](Index j, Index from, Index to) {
    const float largest = scale();
    const Index top = random.chance(0.5) ? (random.chance(0.5) ? from : to - 1) : random.between(from, to - 1);
    for (Index p = from; p < to; ++p) {
      const auto at = static_cast<std::size_t>(j * k + p);
      const bool negative = random.chance(0.5);
      const auto i = static_cast<std::size_t>(random.below(kNf4Midpoints.size()));
      const auto side = random.below(3);
      const float tie = kNf4Midpoints[i] * largest;
      x[at] = p == top    ? (negative ? -largest : largest)
              : side == 0 ? tie
                          : std::nextafter(tie, side == 1 ? -INFINITY : INFINITY);
      if (codes != nullptr)
        (*codes)[at] = static_cast<unsigned>(p == top ? (negative ? 0 : 15) : i + (side == 2 ? 1 : 0));
    }
  });
  return x;
}

float any_scale(Random& random) { return static_cast<float>(random.by_magnitude(-119, 126)); }

}  // namespace
}  // namespace nf4_quantize

void nf4_quantize::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy != Strategy::directed) return;
  const bool smallest = random.chance(0.25);
  problem.values[0] = around_midpoints(problem.dims[0], problem.dims[1], random, [&] {
    if (!smallest) return any_scale(random);
    const auto side = random.below(3);
    return side == 0 ? kNf4Smallest : std::nextafter(kNf4Smallest, side == 1 ? 0.0F : 1.0F);
  });
}

Outcome nf4_quantize::midpoints(Trial& trial) {
  Problem problem = trial.problem();
  Random random = trial.random("midpoints");
  std::vector<unsigned> codes;
  problem.values[0] = around_midpoints(
      problem.dims[0], problem.dims[1], random, [&] { return any_scale(random); }, &codes);
  const Run run = trial.run(problem);
  Problem want = problem;  // codes in place of x
  want.values[0].assign(run.outputs[0].size(), kNf4ZeroPair);
  const Index n = problem.dims[0], k = problem.dims[1];
  const Shape bytes = problem.shape(1);
  for (Index j = 0; j < n; ++j)
    for (Index p = 0; p < k; ++p) {
      float& byte = want.values[0][static_cast<std::size_t>(j * bytes[1] + p / 2)];
      const auto pair = static_cast<unsigned>(byte), code = codes[static_cast<std::size_t>(j * k + p)];
      byte = static_cast<float>(p % 2 == 0 ? code * 16 + pair % 16 : pair / 16 * 16 + code);
    }
  return compare_bits("codes", bytes, run.outputs[0], want.values[0], "at midpoints and beside them");
}

Outcome nf4_quantize::zeros(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("zeros");
  const Index k = problem.dims[1], width = problem.shape(1)[1];
  for_each_block(problem.dims[0], k, [&](Index j, Index from, Index to) {
    const bool all = random.chance(0.5);
    for (Index p = from; p < to; ++p)
      if (all || random.chance(0.5))
        problem.values[0][static_cast<std::size_t>(j * k + p)] = random.chance(0.5) ? 0.0F : -0.0F;
  });
  const Run run = trial.run(problem);
  Outcome outcome = trial.against_oracle(Tier::bits, problem, run);
  for (Index j = 0; j < problem.dims[0]; ++j)
    for (Index p = 0; p < k; ++p) {
      if (problem.values[0][static_cast<std::size_t>(j * k + p)] != 0) continue;
      const auto pair = static_cast<unsigned>(run.outputs[0][static_cast<std::size_t>(j * width + p / 2)]);
      const unsigned code = p % 2 == 0 ? pair / 16 : pair % 16;
      if (code != kNf4Zero)
        outcome &= Outcome::falsify({Finding::Kind::value, "a zero has code " + std::to_string(code) + ", not 7",
                                     "codes", Shape{j, p / 2}, static_cast<double>(code), kNf4Zero, 0});
    }
  return outcome;
}

Outcome nf4_quantize::round_trip(Trial& trial) {
  Problem problem = trial.problem();
  Random random = trial.random("round trip");
  const Index n = problem.dims[0], k = problem.dims[1];
  for_each_block(n, k, [&](Index j, Index from, Index to) {
    const float scale = std::ldexp(1.0F, static_cast<int>(random.between(-60, 60)));
    const Index top = random.between(from, to - 1);
    for (Index p = from; p < to; ++p)
      problem.values[0][static_cast<std::size_t>(j * k + p)] =
          kNf4[p == top ? 15 * random.below(2) : random.below(16)] * scale;
  });
  const Run run = trial.run(problem);
  const Problem back{&operation("nf4_dequantize"), {n, k}, {}, {run.outputs[0], run.outputs[1], {}}};
  const std::vector<float> decoded = weights_of(back, 0, 1, n, k);
  return compare_bits("codes", Shape{n, k}, decoded, problem.values[0], "decoded, against the matrix");
}

Outcome nf4_quantize::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

Outcome nf4_quantize::scaling(Trial& trial) {
  const Problem plain = trial.problem(Strategy::gaussian);
  Random random = trial.random("scaling");
  const int exponent = static_cast<int>(random.between(-60, 60));
  Problem scaled = plain;
  for (float& x : scaled.values[0]) x = std::ldexp(x, exponent);
  const Run once = trial.run(plain), again = trial.run(scaled);
  std::vector<float> absmax = once.outputs[1];
  for (float& a : absmax) a = std::ldexp(a, exponent);
  Outcome outcome =
      compare_bits("codes", plain.shape(1), again.outputs[0], once.outputs[0], "of x scaled by a power of two");
  outcome &= compare_bits("absmax", plain.shape(2), again.outputs[1], absmax, "of x scaled by a power of two");
  return outcome;
}

audit::Subject nf4_quantize::audited() {
  return {.sums = {{.says = "absmax[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 128},
                    .count = 1,
                    .left = {0},
                    .result = {2},
                    .no_subnormals = "scales below 2^-120 count as 0"}}};
}

}  // namespace assay::falsify
