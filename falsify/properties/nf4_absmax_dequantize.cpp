// Properties of absmax = code[q] absmax2 + offset (obligations of contracts/nf4_absmax_dequantize.yaml).
#include "nf4_absmax_dequantize_obligations.hpp"

#include <algorithm>

#include "core/nf4_absmax.hpp"
#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {
namespace nf4_absmax_dequantize {
namespace {

enum Tensor { kCodes, kScalesOfScales, kOffset, kScales };

}  // namespace
}  // namespace nf4_absmax_dequantize

/// Makes codes 0 and 1 for exact sums; every entry, and offsets that cancel products, for directed values.
void nf4_absmax_dequantize::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  std::vector<float>& codes = problem.values[kCodes];
  if (is_exact(strategy))
    for (float& code : codes) code = random.chance(0.5) ? 255.0F : static_cast<float>(kAbsmaxZero);
  if (strategy != Strategy::directed) return;
  const auto shift = static_cast<std::size_t>(random.below(256));
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<float>((i + i / 256 + shift) % 256);
  const std::vector<float>& scales = problem.values[kScalesOfScales];
  if (!scales.empty() && random.chance(0.5)) problem.values[kOffset][0] = -kAbsmaxCode[random.below(256)] * scales[0];
}

Outcome nf4_absmax_dequantize::codebook(Trial& trial) {
  Problem problem = trial.problem();
  Random random = trial.random("codebook");
  std::ranges::fill(problem.values[kScalesOfScales], 1.0F);
  problem.values[kOffset] = {0.0F};
  const auto shift = static_cast<std::size_t>(random.below(256));
  std::vector<float> want(static_cast<std::size_t>(problem.shape(kScales).size()));
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::size_t code = (i * 5 + i / 256 + shift) % 256;
    problem.values[kCodes][i] = static_cast<float>(code);
    want[i] = kAbsmaxCode[code];
  }
  return compare_bits("absmax", problem.shape(kScales), trial.run(problem).outputs[0], want,
                      "with absmax2 1 and offset 0, against the codebook");
}

Outcome nf4_absmax_dequantize::groups(Trial& trial) {
  Problem problem = trial.problem();
  std::ranges::fill(problem.values[kCodes], 255.0F);
  problem.values[kOffset] = {0.0F};
  for (std::size_t g = 0; g < problem.values[kScalesOfScales].size(); ++g)
    problem.values[kScalesOfScales][g] = static_cast<float>(g + 1);
  std::vector<float> want(static_cast<std::size_t>(problem.shape(kScales).size()));
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = static_cast<float>(i / kAbsmaxGroup + 1);
  return compare_bits("absmax", problem.shape(kScales), trial.run(problem).outputs[0], want,
                      "against the scale of its group");
}

Outcome nf4_absmax_dequantize::scaling(Trial& trial) {
  return scales_with(trial, {kScalesOfScales, kOffset}, Strategy::gaussian);
}

Outcome nf4_absmax_dequantize::padding(Trial& trial) {
  const Problem problem = trial.problem();
  Problem other = problem;
  Random random = trial.random("padding");
  for (auto i = static_cast<std::size_t>(problem.shape(kScales).size()); i < other.values[kCodes].size(); ++i)
    other.values[kCodes][i] = static_cast<float>(random.below(256));
  const Run plain = trial.run(problem), changed = trial.run(other);
  return trial.related(compare_bits("absmax", problem.shape(kScales), changed.outputs[0], plain.outputs[0],
                                    "with other codes behind the last scale"),
                       Related::always, {{problem, plain}, {other, changed}});
}

audit::Subject nf4_absmax_dequantize::audited() {
  return {.sums = {{.says = "absmax[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 8},
                    .count = 2,
                    .left = {1},
                    .second = {2},
                    .result = {3},
                    .background = [](Problem& p) { std::ranges::fill(p.values[0], 255.0F); }}}};
}

}  // namespace assay::falsify
