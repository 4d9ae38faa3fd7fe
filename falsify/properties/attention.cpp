// Properties of attention (obligations of contracts/attention.yaml).
#include "attention_obligations.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "falsify/properties/shared/heads.hpp"
#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {
namespace attention {
namespace {

/// Compares both outputs of two calls that must agree.
Outcome agree(Trial& trial, const Problem& problem, const Problem& same) {
  const Run run = trial.run(problem), other = trial.run(same);
  const auto want = trial.oracle(problem);
  const std::vector<int> outputs = outputs_of(trial.op());
  Outcome outcome;
  for (std::size_t o = 0; o < outputs.size(); ++o)
    outcome &= same_within(trial.op().tensors[static_cast<std::size_t>(outputs[o])].name, problem.shape(outputs[o]),
                           widened(other.outputs[o]), widened(run.outputs[o]), want[o]);
  return outcome;
}

/// Returns a power of two.
float amplitude(int exponent) { return std::ldexp(1.0F, exponent); }

}  // namespace
}  // namespace attention

void attention::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  sensible_heads(problem, strategy, random);
}

Outcome attention::batch_slicing(Trial& trial) { return rows_are_independent(trial); }

Outcome attention::repeated_heads(Trial& trial) {
  const Problem shared = trial.problem();
  return agree(trial, shared, repeated_key_value_heads(shared));
}

Outcome attention::causality(Trial& trial) {
  Problem plain = trial.problem(Strategy::gaussian);
  Random random = trial.random("unseen");
  plain.params[1] = random.chance(0.8) ? 1 : 0;
  const Heads a(plain);
  if (a.s == 0) return Outcome::not_applicable("no queries");
  const auto seen_by = static_cast<Index>(random.below(static_cast<std::uint64_t>(a.s)));
  const Problem changed = with_unseen_keys_changed(plain, seen_by, random);
  const Run run = trial.run(plain), other = trial.run(changed);
  // Rows up to that query see no later key.
  std::vector<float> before, after;
  for (Index b = 0; b < a.batch; ++b)
    for (Index h = 0; h < a.heads; ++h)
      for (Index i = 0; i <= seen_by; ++i) {
        before.push_back(run.outputs[1][a.row(b, h, i)]);
        after.push_back(other.outputs[1][a.row(b, h, i)]);
        for (Index c = 0; c < a.d; ++c) {
          before.push_back(run.outputs[0][a.query(b, i, h, c)]);
          after.push_back(other.outputs[0][a.query(b, i, h, c)]);
        }
      }
  return trial.related(compare_bits("y", Shape{static_cast<Index>(before.size())}, after, before,
                                    "rows (logsumexp, then y) after keys and values that they do not see have changed"),
                       Related::always, {{plain, run}, {changed, other}});
}

Outcome attention::key_permutation(Trial& trial) {
  Problem plain = trial.problem();
  plain.params[1] = 0;
  Problem permuted = plain;
  const Heads from(plain), to(permuted);
  Random random = trial.random("permutation");
  for (Index b = 0; b < from.batch; ++b) {
    std::vector<Index> place(static_cast<std::size_t>(from.lengths[static_cast<std::size_t>(b)]));
    std::iota(place.begin(), place.end(), Index{0});
    for (std::size_t i = place.size(); i > 1; --i) std::swap(place[i - 1], place[random.below(i)]);
    for (std::size_t j = 0; j < place.size(); ++j)
      for (Index g = 0; g < from.kv_heads; ++g)
        for (Index c = 0; c < from.d; ++c) {
          to.k[to.key(b, place[j], g, c)] = from.k[from.key(b, static_cast<Index>(j), g, c)];
          to.v[to.key(b, place[j], g, c)] = from.v[from.key(b, static_cast<Index>(j), g, c)];
        }
  }
  return agree(trial, plain, permuted);
}

/// Key j holds the bits of j as signs, the query those of its target: the target's score exceeds every other score by
/// at least 128, so that the other weights vanish.
Outcome attention::selection(Trial& trial) {
  Problem problem = trial.problem(Strategy::exact_integers);
  const Heads a(problem);
  Random random = trial.random("selection");
  const int exponent = static_cast<int>(std::ceil(std::log2(64 / problem.params[0])));
  const int of_query = exponent / 2, of_key = exponent - of_query;
  const Index codes = a.d < 20 ? Index{1} << a.d : a.t;
  for (float& length : a.lengths) length = std::min(length, static_cast<float>(codes));
  const auto bit = [](Index j, Index c) { return c < 20 && (j >> c & 1) != 0 ? 1.0F : -1.0F; };
  for (Index b = 0; b < a.batch; ++b)
    for (Index j = 0; j < a.t; ++j)
      for (Index g = 0; g < a.kv_heads; ++g)
        for (Index c = 0; c < a.d; ++c) {
          a.k[a.key(b, j, g, c)] = bit(j, c) * amplitude(of_key);
          a.v[a.key(b, j, g, c)] = static_cast<float>(random.between(1, 255)) * (random.chance(0.5) ? 1.0F : -1.0F);
        }
  std::vector<double> expected(a.q.size(), 0.0);
  for (Index b = 0; b < a.batch; ++b)
    for (Index i = 0; i < a.s; ++i)
      for (Index h = 0; h < a.heads; ++h) {
        const Index seen = a.visible(b, i);
        const Index target = seen > 0 ? static_cast<Index>(random.below(static_cast<std::uint64_t>(seen))) : 0;
        for (Index c = 0; c < a.d; ++c) {
          a.q[a.query(b, i, h, c)] = bit(target, c) * amplitude(of_query);
          if (seen > 0) expected[a.query(b, i, h, c)] = a.v[a.key(b, target, h / a.group, c)];
        }
      }
  const Run run = trial.run(problem);
  return compare_within("y", problem.shape(5), widened(run.outputs[0]), expected, bounds_of(trial.oracle(problem)[0]));
}

Outcome attention::value_scaling(Trial& trial) {
  const Problem plain = weights_of_normal_size(trial);
  const int by = static_cast<int>(trial.random("scaling").between(1, 2));
  if (!scales_exactly(plain, 2, by)) return Outcome::not_applicable("a value of v that its storage cannot scale");
  Problem scaled = plain;
  for (float& x : scaled.values[2]) x = std::ldexp(x, by);
  return trial.scales(plain, scaled, {by, 0});
}

namespace attention {
namespace {

/// Makes every query see every key, with unscaled scores.
void all_seen(Problem& p) {
  std::ranges::fill(p.values[3], static_cast<float>(p.dims[2]));
  p.params = {1, 0};
}

}  // namespace
}  // namespace attention

audit::Subject attention::audited() {
  return {.sums = {{.says = "y[0,0,0,0] over keys",
                    .terms = audit::Terms::values,
                    .dims = {1, 4, 64, 1, 1, 16},
                    .count = 64,
                    .left = {2, 0, 16},
                    .result = {5},
                    .scale = 1.0 / 64,
                    .background = &all_seen},
                   {.says = "the score in logsumexp[0,0,0] over d",
                    .terms = audit::Terms::products,
                    .dims = {1, 4, 1, 1, 1, 64},
                    .count = 64,
                    .left = {0},
                    .right = {1},
                    .result = {6},
                    .background = &all_seen},
                   {.says = "the denominator in logsumexp[0,0,0] over keys",
                    .terms = audit::Terms::exponentials,
                    .dims = {1, 4, 32, 1, 1, 16},
                    .count = 32,
                    .left = {1, 0, 16},
                    .result = {6},
                    .background = [](Problem& p) { all_seen(p), p.values[0][0] = 1; }}},
          .dims = {2, 9, 70, 2, 4, 20}};
}

}  // namespace assay::falsify
