#include "falsify/properties/inputs/bce.hpp"

#include <cmath>

namespace assay::falsify {

void direct_labels(Problem& problem, Strategy strategy, Random& random) {
  auto &logits = problem.values[0], &targets = problem.values[1], &weights = problem.values[2];
  for (float& w : weights) w = std::fabs(w);
  for (float& t : targets) {
    if (!std::isfinite(t)) continue;
    const auto kind = random.below(3);
    t = kind == 0 ? 0.0F : kind == 1 ? 1.0F : static_cast<float>(random.uniform());
  }
  if (strategy != Strategy::directed) return;
  const bool plain_weights = random.chance(0.5);
  if (plain_weights)
    for (float& w : weights) w = 1;
  static constexpr double kScales[] = {1e-4, 1, 8, 20, 88, 104, 1000};
  const auto side = static_cast<double>(random.between(-1, 1)),
             centre = side * kScales[random.below(std::size(kScales))];
  for (float& x : logits) x = static_cast<float>(centre + random.gaussian());
  if (random.chance(0.4))  // all labels right: the loss is only exp(-|x|)
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = logits[i] > 0 ? 1.0F : 0.0F;
}

Mirrored mirrored_labels(Problem problem, Random& random) {
  for (float& w : problem.values[2]) w = 1;
  for (float& t : problem.values[1]) t = static_cast<float>(random.below(5)) / 4;
  Mirrored both{problem, problem};
  for (float& x : both.mirrored.values[0]) x = -x;
  for (float& t : both.mirrored.values[1]) t = 1 - t;
  return both;
}

}  // namespace assay::falsify
