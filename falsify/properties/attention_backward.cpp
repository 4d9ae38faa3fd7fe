// Properties of attention_backward (obligations of contracts/attention_backward.yaml).
#include "attention_backward_obligations.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/half.hpp"
#include "falsify/properties/shared/heads.hpp"
#include "falsify/properties/shared/rows.hpp"
#include "reference/attention.hpp"

namespace assay::falsify {

namespace attention_backward {
namespace {

/// Scales q down by a power of two until scores are below some tens: if one weight is 1, the gradients of q and k
/// vanish.
void bring_scores_together(Problem& problem) {
  const auto largest = [](const std::vector<float>& values) {
    double most = 0;
    for (float x : values)
      if (std::isfinite(x)) most = std::max(most, std::fabs(static_cast<double>(x)));
    return most;
  };
  const double score = problem.params[0] * std::sqrt(static_cast<double>(problem.dims[5])) *
                       largest(problem.values[0]) * largest(problem.values[1]);
  if (score > 16)
    for (float& x : problem.values[0]) x = std::ldexp(x, -std::ilogb(score / 8));
}

/// Zeroes all but one or two columns of v, so that its products with dy are short sums with tight bounds.
void keep_few_columns(Problem& problem, Random& random) {
  const auto d = static_cast<std::uint64_t>(problem.dims[5]);
  const std::uint64_t kept[] = {random.below(d), d - 1 - random.below(std::min<std::uint64_t>(d, 16))};
  std::vector<float>& v = problem.values[2];
  for (std::size_t e = 0; e < v.size(); ++e)
    if (e % d != kept[0] && e % d != kept[1]) v[e] = 0;
}

}  // namespace
}  // namespace attention_backward

/// Sets y and logsumexp to the values that the forward pass saves; planted values in them stay.
void attention_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  sensible_heads(problem, strategy, random, false);
  if (strategy != Strategy::directed && strategy != Strategy::runs && random.chance(0.8))
    bring_scores_together(problem);
  if (strategy == Strategy::directed && random.chance(0.3)) keep_few_columns(problem, random);
  // Inputs beyond the largest number of their storage become that number, not infinite (make_problem).
  const float largest = problem.storage == DType::f16    ? 65504.0F
                        : problem.storage == DType::bf16 ? 0x1.fep127F
                                                         : FLT_MAX;
  const auto widened_view = [&](int tensor) {
    std::vector<double> values;
    for (float x : problem.values[static_cast<std::size_t>(tensor)]) {
      if (!problem.op->tensors[static_cast<std::size_t>(tensor)].storage) values.push_back(x);
      else values.push_back(stored(problem.storage, std::isfinite(x) ? std::clamp(x, -largest, largest) : x));
    }
    return values;
  };
  const std::vector<double> q = widened_view(0), k = widened_view(1), v = widened_view(2), lengths = widened_view(3),
                            starts = widened_view(4);
  std::vector<double> y(problem.values[5].size()), logsumexp(problem.values[6].size());
  reference::attention<double>({q.data(), problem.shape(0)}, {k.data(), problem.shape(1)}, {v.data(), problem.shape(2)},
                               {lengths.data(), problem.shape(3)}, {starts.data(), problem.shape(4)},
                               {y.data(), problem.shape(5)}, {logsumexp.data(), problem.shape(6)}, problem.params[0],
                               problem.params[1]);
  const auto take = [](const std::vector<double>& from, std::vector<float>& to) {
    for (std::size_t e = 0; e < to.size(); ++e)
      if (std::isfinite(to[e])) to[e] = static_cast<float>(from[e]);
  };
  take(y, problem.values[5]);
  take(logsumexp, problem.values[6]);
}

Outcome attention_backward::batch_slicing(Trial& trial) { return rows_are_independent(trial); }

Outcome attention_backward::repeated_heads(Trial& trial) {
  Problem shared = trial.problem();
  const Problem repeated = repeated_key_value_heads(shared);
  const Heads a(shared);
  const Run run = trial.run(shared), other = trial.run(repeated);
  const auto want = trial.oracle(shared), apart = trial.oracle(repeated);
  Outcome outcome;
  for (std::size_t o : {1U, 2U}) {
    const std::vector<double> shared_bounds = bounds_of(want[o]), own_bounds = bounds_of(apart[o]);
    std::vector<double> got = widened(run.outputs[o]), sum(got.size(), 0.0), bound = shared_bounds;
    for (std::size_t e = 0; e < got.size(); ++e) {
      const std::size_t c = e % static_cast<std::size_t>(a.d), g = e / static_cast<std::size_t>(a.d);
      for (std::size_t member = 0; member < static_cast<std::size_t>(a.group); ++member) {
        const std::size_t at = (g * static_cast<std::size_t>(a.group) + member) * static_cast<std::size_t>(a.d) + c;
        sum[e] += other.outputs[o][at];
        bound[e] += own_bounds[at];
      }
      // Beyond 16 bits the shared gradient is infinite, although its parts may be finite.
      const bool finite = std::isfinite(bound[e]) && std::isfinite(sum[e]) && std::isfinite(want[o][e].value);
      if (!finite) got[e] = sum[e] = 0;
    }
    outcome &= compare_within(o == 1 ? "dk" : "dv", shared.shape(1), got, sum, bound);
  }
  return outcome;
}

Outcome attention_backward::upstream_scaling(Trial& trial) {
  const Problem plain = weights_of_normal_size(trial);
  const int by = static_cast<int>(trial.random("scaling").between(1, 4));
  if (!scales_exactly(plain, 7, by))
    return Outcome::not_applicable("an upstream gradient that its storage cannot scale");
  Problem scaled = plain;
  for (float& x : scaled.values[7]) x = std::ldexp(x, by);
  return trial.scales(plain, scaled, {by, by, by});
}

Outcome attention_backward::causality(Trial& trial) {
  Problem plain = trial.problem(Strategy::gaussian);
  plain.params[1] = 1;
  Random random = trial.random("unseen");
  const Heads a(plain);
  if (a.s == 0) return Outcome::not_applicable("no queries");
  const Problem changed = with_unseen_keys_changed(plain, a.s - 1, random);
  const Run run = trial.run(plain), other = trial.run(changed);
  Outcome outcome;
  for (std::size_t o = 0; o < 3; ++o) {
    std::vector<float> want = run.outputs[o];
    for (Index b = 0; b < a.batch && o > 0; ++b)
      for (Index j = a.visible(b, a.s - 1); j < a.t; ++j)
        for (Index g = 0; g < a.kv_heads; ++g)
          for (Index c = 0; c < a.d; ++c) want[a.key(b, j, g, c)] = 0;
    outcome &= compare_bits(o == 0   ? "dq"
                            : o == 1 ? "dk"
                                     : "dv",
                            plain.shape(static_cast<int>(o == 0 ? 0 : o)), other.outputs[o], want,
                            "after keys and values that no query sees have changed");
  }
  return trial.related(std::move(outcome), Related::always, {{plain, run}, {changed, other}});
}

namespace attention_backward {
namespace {

/// Makes scores and logsumexp 0, so that every weight is 1: ds is dy v.
void weights_one(Problem& p) {
  std::ranges::fill(p.values[3], static_cast<float>(p.dims[2]));
  p.params = {1, 0};
}

}  // namespace
}  // namespace attention_backward

audit::Subject attention_backward::audited() {
  return {.sums = {{.says = "dv[0,0,0,0] over queries",
                    .terms = audit::Terms::values,
                    .dims = {1, 64, 4, 1, 1, 16},
                    .count = 64,
                    .left = {7, 0, 16},
                    .result = {10},
                    .background = &weights_one},
                   {.says = "dq[0,0,0,0] over keys",
                    .terms = audit::Terms::products,
                    .dims = {1, 4, 64, 1, 1, 16},
                    .count = 64,
                    .left = {2, 0, 16},
                    .right = {1, 0, 16},
                    .result = {8},
                    .background = [](Problem& p) { weights_one(p), p.values[7][0] = 1; }},
                   {.says = "dk[0,0,0,0] over queries",
                    .terms = audit::Terms::products,
                    .dims = {1, 64, 4, 1, 1, 16},
                    .count = 64,
                    .left = {7, 0, 16},
                    .right = {0, 0, 16},
                    .result = {9},
                    .background = [](Problem& p) { weights_one(p), p.values[2][0] = 1; }}},
          .dims = {2, 9, 70, 2, 4, 20}};
}

}  // namespace assay::falsify
