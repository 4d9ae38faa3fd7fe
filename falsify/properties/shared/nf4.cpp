#include "falsify/properties/shared/nf4.hpp"

#include <algorithm>
#include <cmath>

namespace assay::falsify {
namespace {

std::size_t byte_of(Index k, Index j, Index p) {
  return static_cast<std::size_t>(j * nf4_blocks(k) * kNf4Bytes + p / 2);
}
unsigned code_of(const std::vector<float>& codes, Index k, Index j, Index p) {
  const auto pair = static_cast<unsigned>(codes[byte_of(k, j, p)]);
  return p % 2 == 0 ? pair / 16 : pair % 16;
}

}  // namespace

void set_code(Problem& problem, int codes, Index k, Index j, Index p, unsigned code) {
  float& byte = problem.values[static_cast<std::size_t>(codes)][byte_of(k, j, p)];
  const auto pair = static_cast<unsigned>(byte);
  byte = static_cast<float>(p % 2 == 0 ? code * 16 + pair % 16 : pair / 16 * 16 + code);
}

void count_through_codes(Problem& problem, int codes) {
  std::vector<float>& bytes = problem.values[static_cast<std::size_t>(codes)];
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<float>(i % 16 * 16 + (i + 5) % 16);
}

void make_codes(Problem& problem, int codes, int absmax, int other, Index k, Strategy strategy, Random& random) {
  if (strategy == Strategy::directed) {
    count_through_codes(problem, codes);
    if (random.chance(0.2))  // the largest scale that is treated as 0
      for (float& scale : problem.values[static_cast<std::size_t>(absmax)]) scale = std::nextafter(kNf4Smallest, 0.0F);
  }
  if (!is_exact(strategy)) return;
  const std::vector<float>& scales = problem.values[static_cast<std::size_t>(absmax)];
  const std::vector<float>& factor = problem.values[static_cast<std::size_t>(other)];
  const bool scales_select = std::ranges::all_of(scales, [](float x) { return std::fabs(x) <= 1; });
  const bool factor_selects = std::ranges::all_of(factor, [](float x) { return std::fabs(x) <= 1; });
  // A factor that selects single weights gives arbitrary weights bit for bit.
  if (strategy == Strategy::distinct_index && factor_selects) return;
  const Index n = problem.shape(codes)[0];
  for (Index j = 0; j < n; ++j)
    for (Index b = 0; b < nf4_blocks(k); ++b) {
      const Index from = b * kNf4Block, to = std::min(k, from + kNf4Block);
      const bool one = scales_select && strategy != Strategy::exact_integers;
      const Index at = random.between(from, to - 1);
      for (Index p = from; p < to; ++p) {
        static constexpr unsigned kExact[] = {0, kNf4Zero, 15};
        set_code(problem, codes, k, j, p, one ? (p == at ? 15 : kNf4Zero) : kExact[random.below(3)]);
      }
    }
}

std::vector<float> weights_of(const Problem& problem, int codes, int absmax, Index n, Index k) {
  std::vector<float> weights;
  weights.reserve(static_cast<std::size_t>(n * k));
  for (Index j = 0; j < n; ++j)
    for (Index p = 0; p < k; ++p)
      weights.push_back(kNf4[code_of(problem.values[static_cast<std::size_t>(codes)], k, j, p)] *
                        nf4_scale(problem.values[static_cast<std::size_t>(absmax)]
                                                [static_cast<std::size_t>(j * nf4_blocks(k) + p / kNf4Block)]));
  return weights;
}

Outcome padding_does_not_matter(Trial& trial, int codes, Index k) {
  const Problem problem = trial.problem();
  Problem other = problem;
  Random random = trial.random("padding");
  for (Index j = 0; j < problem.shape(codes)[0]; ++j)
    for (Index p = k; p < nf4_blocks(k) * kNf4Block; ++p)
      set_code(other, codes, k, j, p, static_cast<unsigned>(random.below(16)));
  const Run plain = trial.run(problem), changed = trial.run(other);
  const int output = outputs_of(trial.op())[0];
  return trial.related(compare_bits(trial.op().tensors[static_cast<std::size_t>(output)].name, problem.shape(output),
                                    changed.outputs[0], plain.outputs[0], "with other codes behind the last column"),
                       Related::always, {{problem, plain}, {other, changed}});
}

}  // namespace assay::falsify
