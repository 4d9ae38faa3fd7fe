#include "falsify/audit/confirm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "falsify/audit/fitted.hpp"
#include "falsify/audit/judge.hpp"
#include "falsify/audit/measure.hpp"
#include "falsify/audit/prober.hpp"
#include "falsify/engine/draw.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify::audit {

std::optional<std::string> contradicts_nearest(Trial& trial) {
  const Subject subject = audit::subject(trial.op().name);
  const Limits* const limits = trial.kernel().limits;
  const auto sum = std::ranges::find_if(subject.sums, [&](const Sum& s) {
    return (limits == nullptr || limits->gives(s.result.tensor)) && s.count > 2 &&
           (s.terms == Terms::products || s.terms == Terms::values);
  });
  if (sum == subject.sums.end()) return std::nullopt;
  const std::optional<Sum> taken = fitted(trial.op(), trial.kernel(), *sum);
  if (!taken) return std::nullopt;
  const Format accumulator = trial.kernel().arithmetic.accumulator;
  const float base = 0x1p10F, last = std::ldexp(base, 1 - significand_bits(accumulator));
  try {
    Prober probe(trial.op(), trial.kernel(), *taken, [&](const Problem& problem) { return trial.run(problem); });
    // With rounding to nearest, no order of the three gives 0; with rounding toward zero, orders that begin with B and
    // the small term do.
    const Index n = taken->count;
    const std::array<std::array<Index, 3>, 4> places{{{0, 1, n - 1}, {0, n / 2, 1}, {1, 0, n - 1}, {n - 1, n - 2, 0}}};
    const auto left = [&](const auto& at, float of) {
      return probe({{at[0], of}, {at[1], 0.75F * last}, {at[2], -of}});
    };
    const auto lost = std::ranges::find_if(places, [&](const auto& at) { return left(at, base) == 0; });
    if (lost == places.end()) return std::nullopt;
    // If partial sums are rescaled (merged parts of a softmax), a product may lose a bit that the addition kept. With
    // rounding toward zero all numbers of the binade lose it; with rounding to nearest, products lose it for about one
    // number in two.
    for (int k = 1; k < kMantissas; ++k)
      if (left(*lost, base * (1 + static_cast<float>(k) / kMantissas)) > 0) return std::nullopt;
  } catch (const Interrupted& interrupted) {
    using enum Outcome::Kind;  // the kernel may not take the probe's call
    if (interrupted.outcome.kind == refused || interrupted.outcome.kind == not_applicable) return std::nullopt;
    throw;
  }
  return fmt::format(
      "declares accumulation to nearest in {}: {} + 3/4 of its last place - {} gave 0, so it rounds toward zero or in fewer bits",
      name(accumulator), base, base);
}

namespace {
const CheckDraws kStatistical("statistical", {.strategies = {Strategy::gaussian},
                                              .long_reductions = true,
                                              .fills = Turn{16, 6},
                                              .oracle_use = OracleUse::sample});
}  // namespace

Outcome statistical(Trial& trial) {
  if (!statistical_tier_used(trial.kernel().arithmetic))
    return Outcome::not_applicable("the kernel declares accumulation that does not round to nearest");
  if (const auto why = contradicts_nearest(trial))
    return Outcome::falsify({Finding::Kind::rounding, *why, "", {}, 0, 0, 0});
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  return trial.against_oracle(Tier::statistical, problem, run);
}

}  // namespace assay::falsify::audit
