// Properties of q = the 8-bit code of (absmax - mean) / absmax2 (obligations of contracts/nf4_absmax_quantize.yaml).
#include "nf4_absmax_quantize_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "core/nf4_absmax.hpp"
#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {
namespace nf4_absmax_quantize {
namespace {

enum Tensor { kScales, kCodes, kScalesOfScales, kOffset };
enum Output { kCodesOut, kScalesOfScalesOut, kOffsetOut };

/// Returns a float of few bits in [2^e, 1.5 2^e] that is the mean of `count` values with a sum of exactly `count` times
/// it.
float exact_mean(Index count, Random& random) {
  for (int exponent = static_cast<int>(random.between(-60, 60));;) {
    const float offset = std::ldexp(1 + static_cast<float>(random.between(0, 32)) / 64, exponent);
    if (absmax_offset(static_cast<float>(count) * offset, absmax_reciprocal(count)) == offset) return offset;
    if (random.chance(0.01)) ++exponent;
  }
}

/// A difference that an offset with this step plus the difference represents exactly, and that equals a midpoint times
/// a scale or is an adjacent float, so that a midpoint that is one float off shows.
struct Tie {
  std::size_t midpoint;
  float scale, difference;

  float limit() const { return kAbsmaxMidpoints[midpoint] * scale; }
  bool holds() const {
    return difference > 0 && std::nextafter(limit(), 0.0F) <= difference &&
           difference <= std::nextafter(limit(), FLT_MAX);
  }
  /// Returns the codes of the difference and of its negative.
  unsigned above() const { return static_cast<unsigned>(midpoint) + (limit() < difference ? 1U : 0U); }
  unsigned below() const {  // the last midpoint has no negative
    return midpoint == 254 ? 0 : 253 - static_cast<unsigned>(midpoint) + (limit() > difference ? 1U : 0U);
  }
};
std::size_t positive_midpoint(Random& random) { return static_cast<std::size_t>(random.between(kAbsmaxZero, 254)); }

/// Draws a midpoint and a scale of 2^21 to 2^22 steps that holds for it.
Tie draw_tie(float step, Random& random) {
  for (;;) {
    const std::size_t i = positive_midpoint(random);
    const float steps = std::rint(kAbsmaxMidpoints[i] * static_cast<float>(random.between(1 << 21, 1 << 22)));
    const Tie tie{i, std::rint(steps / kAbsmaxMidpoints[i]) * step, steps * step};
    if (tie.scale >= 0x1p21F * step && tie.scale < 0x1p22F * step && tie.holds()) return tie;
  }
}
/// Draws another midpoint for the given scale; returns the given tie if none holds.
Tie draw_tie_of(const Tie& given, float step, Random& random) {
  for (int i = 0; i < 6; ++i) {
    Tie tie{positive_midpoint(random), given.scale, 0};
    tie.difference = std::rint(tie.limit() / step) * step;
    if (tie.holds()) return tie;
  }
  return given;
}

/// Makes scales with an exact mean whose differences from it are midpoints times the scale of their group, or adjacent
/// floats: offset + d and offset - d lie half a group apart, where the contract's tree adds them to twice the offset.
/// Values without a partner equal the offset. Stores the right codes in `codes`.
std::vector<float> around_midpoints(Index count, Random& random, std::vector<float>* codes = nullptr) {
  const float offset = exact_mean(count, random);
  const float step = std::ldexp(1.0F, std::ilogb(offset) - 23);
  std::vector<float> values(static_cast<std::size_t>(count), offset);
  if (codes != nullptr) codes->assign(static_cast<std::size_t>(absmax_groups(count) * kAbsmaxGroup), kAbsmaxZero);
  const auto place = [&](Index i, float difference, unsigned code) {
    values[static_cast<std::size_t>(i)] = offset + difference;
    if (codes != nullptr) (*codes)[static_cast<std::size_t>(i)] = static_cast<float>(code);
  };
  for (Index first = 0; first < count; first += kAbsmaxGroup) {
    const Index pairs = std::clamp<Index>(count - first - kAbsmaxGroup / 2, 0, kAbsmaxGroup / 2);
    if (pairs == 0) continue;
    const Tie scaled = draw_tie(step, random);
    const Index top = random.between(0, pairs - 1);
    for (Index q = 0; q < pairs; ++q) {
      const Tie tie = random.chance(0.2) ? scaled : draw_tie_of(scaled, step, random);
      const Index half = random.chance(0.5) ? kAbsmaxGroup / 2 : 0;
      place(first + q + half, q == top ? tie.scale : tie.difference, q == top ? 255 : tie.above());
      place(first + q + kAbsmaxGroup / 2 - half, q == top ? -tie.scale : -tie.difference, q == top ? 0 : tie.below());
    }
  }
  return values;
}

/// Makes values at an encoder's decisions: all equal, zeros and values treated as zero, a negligible spread, a single
/// value.
void make_edges(std::vector<float>& values, Random& random) {
  const auto kind = random.below(5);
  const float unit = std::ldexp(1.0F, static_cast<int>(random.between(-118, 90)));
  const auto beside = [&](float x) {
    const auto side = random.below(3);
    return side == 0 ? x : std::nextafter(x, side == 1 ? 0.0F : 1.0F);
  };
  for (float& x : values)
    x = kind == 0   ? unit
        : kind == 1 ? (random.chance(0.3) ? 0.0F : beside(kNf4Smallest))
        : kind == 2 ? (random.chance(0.5) ? 0.0F : 2 * beside(kAbsmaxSmallest))
        : kind == 3 ? 0.0F
                    : std::ldexp(1.0F, static_cast<int>(random.between(-140, 100)));
  if (kind == 3 && !values.empty()) values[random.below(values.size())] = unit;
  if (!values.empty() && random.chance(0.1)) values[random.below(values.size())] = -unit;
}

/// Returns the dims of a case with `least` to about `most` scales, with the case's columns if possible.
std::vector<Index> dims_with(const Trial& trial, Index least, Index most) {
  const Index b = std::clamp<Index>(trial.the_case().dims[1], 1, most);
  return {std::clamp<Index>(trial.the_case().dims[0], (least + b - 1) / b, std::max(most / b, (least + b - 1) / b)), b};
}

Outcome compare_all(const Problem& problem, const Run& got, const Run& want, std::string_view meaning) {
  Outcome outcome =
      compare_bits("codes", problem.shape(kCodes), got.outputs[kCodesOut], want.outputs[kCodesOut], meaning);
  outcome &= compare_bits("absmax2", problem.shape(kScalesOfScales), got.outputs[kScalesOfScalesOut],
                          want.outputs[kScalesOfScalesOut], meaning);
  outcome &= compare_bits("offset", problem.shape(kOffset), got.outputs[kOffsetOut], want.outputs[kOffsetOut], meaning);
  return outcome;
}

}  // namespace
}  // namespace nf4_absmax_quantize

/// Makes scales nonnegative, except for a few deliberately invalid ones.
void nf4_absmax_quantize::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  std::vector<float>& values = problem.values[kScales];
  const int shift = strategy == Strategy::huge && random.chance(0.5) ? -16 : 0;  // sums that do not overflow
  for (float& x : values)
    if (std::isfinite(x)) x = std::ldexp(std::fabs(x), shift);
  if (strategy != Strategy::directed) return;
  const auto count = static_cast<Index>(values.size());
  if (count > kAbsmaxGroup / 2 && count <= 1 << 16 && random.chance(0.6)) values = around_midpoints(count, random);
  else make_edges(values, random);
}

Outcome nf4_absmax_quantize::midpoints(Trial& trial) {
  Problem problem = trial.problem(dims_with(trial, kAbsmaxGroup, 1 << 16));
  Random random = trial.random("midpoints");
  std::vector<float> codes;
  problem.values[kScales] = around_midpoints(problem.shape(kScales).size(), random, &codes);
  return compare_bits("codes", problem.shape(kCodes), trial.run(problem).outputs[kCodesOut], codes,
                      "at midpoints and beside them");
}

/// 1 has a code and -1 has none: a pair of the outermost codes, and pairs of opposite codes, move the mean by less than
/// 0.004 of the scale, and 0.007 decides a code.
Outcome nf4_absmax_quantize::round_trip(Trial& trial) {
  std::vector<Index> dims = dims_with(trial, 2, 1 << 14);
  dims[0] += dims[0] % 2;
  Problem problem = trial.problem(dims);
  Random random = trial.random("round trip");
  const Index count = problem.shape(kScales).size();
  if (count % 2 != 0) return Outcome::not_applicable("an odd number of scales is not made of pairs");
  const double scale = std::ldexp(1.0, static_cast<int>(random.between(-60, 60))),
               offset = scale * (1 + 7 * random.uniform());
  std::vector<float> codes(static_cast<std::size_t>(absmax_groups(count) * kAbsmaxGroup), kAbsmaxZero);
  for (Index i = 0; i < count; i += 2) {
    const auto high = i % kAbsmaxGroup == 0 ? 255U : static_cast<unsigned>(random.between(191, 254));
    const unsigned low = high == 255 ? 0 : 254 - high;
    const bool swapped = random.chance(0.5);
    for (const unsigned code : {high, low}) {
      const auto at = static_cast<std::size_t>(i + ((code == high) == swapped ? 1 : 0));
      codes[at] = static_cast<float>(code);
      problem.values[kScales][at] = static_cast<float>(offset + static_cast<double>(kAbsmaxCode[code]) * scale);
    }
  }
  return compare_bits("codes", problem.shape(kCodes), trial.run(problem).outputs[kCodesOut], codes,
                      "of what codes stand for");
}

Outcome nf4_absmax_quantize::rows_do_not_matter(Trial& trial) {
  const Problem rows = trial.problem();
  const Index count = rows.shape(kScales).size();
  Problem flat = rows;
  flat.dims = {1, count};
  if (count > rows.op->dims[1].max) flat.dims = rows.dims;
  return compare_all(rows, trial.run(rows), trial.run(flat), "in rows, against one long row");
}

/// One case in four is large.
Outcome nf4_absmax_quantize::many(Trial& trial) {
  Random random = trial.random("many");
  const bool large = random.chance(0.25);
  const Problem problem =
      large ? trial.problem(dims_with(trial, (1 << 16) + 1 + random.between(0, 600), 1 << 16)) : trial.problem();
  return trial.against_oracle(Tier::bits, problem, trial.run(problem));
}

Outcome nf4_absmax_quantize::scaling(Trial& trial) {
  const Problem plain = trial.problem(Strategy::gaussian);
  Random random = trial.random("scaling");
  const int exponent = static_cast<int>(random.between(-60, 60));
  Problem scaled = plain;
  for (float& x : scaled.values[kScales]) x = std::ldexp(x, exponent);
  Run want = trial.run(plain);
  for (const Output output : {kScalesOfScalesOut, kOffsetOut})
    for (float& x : want.outputs[output]) x = std::ldexp(x, exponent);
  return compare_all(plain, trial.run(scaled), want, "of absmax scaled by a power of two");
}

Outcome nf4_absmax_quantize::constant(Trial& trial) {
  Random random = trial.random("constant");
  Problem problem = trial.problem({Index{1} << random.between(0, 6), Index{1} << random.between(0, 6)});
  const auto value = static_cast<float>(random.by_magnitude(-100, 100));
  std::ranges::fill(problem.values[kScales], value);
  const Run run = trial.run(problem);
  Run want = run;
  std::ranges::fill(want.outputs[kCodesOut], kAbsmaxZero);
  std::ranges::fill(want.outputs[kScalesOfScalesOut], 0.0F);
  want.outputs[kOffsetOut] = {value};
  return compare_all(problem, run, want, "of equal scales");
}

Outcome nf4_absmax_quantize::negative(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  std::vector<float>& values = problem.values[kScales];
  if (values.empty()) return trial.against_oracle(Tier::bits, problem, trial.run(problem));
  Random random = trial.random("negative");
  const float harmless[] = {-0.0F, -std::nextafter(kNf4Smallest, 0.0F)};
  const float harmful[] = {-kNf4Smallest, -1.0F, -FLT_MAX};
  const bool undefined = random.chance(0.7);
  values[random.below(values.size())] = undefined ? harmful[random.below(3)] : harmless[random.below(2)];
  const Run run = trial.run(problem);
  if (!undefined) return trial.against_oracle(Tier::bits, problem, run);
  Run want = run;
  std::ranges::fill(want.outputs[kCodesOut], kAbsmaxZero);
  for (const Output output : {kScalesOfScalesOut, kOffsetOut}) std::ranges::fill(want.outputs[output], NAN);
  return compare_all(problem, run, want, "with a negative scale");
}

audit::Subject nf4_absmax_quantize::audited() {
  return {.sums = {{.says = "offset over n and b",
                    .terms = audit::Terms::positive,
                    .dims = {4, 8},
                    .count = 32,
                    .left = {0},
                    .result = {3}}}};
}

}  // namespace assay::falsify
