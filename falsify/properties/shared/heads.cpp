#include "falsify/properties/shared/heads.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/losses.hpp"

namespace assay::falsify {

Heads::Heads(Problem& p)
    : batch(p.dims[0]), s(p.dims[1]), t(p.dims[2]), kv_heads(p.dims[3]), heads(p.dims[4]), d(p.dims[5]),
      group(heads / kv_heads), causal(p.params[1] != 0), q(p.values[0]), k(p.values[1]), v(p.values[2]),
      lengths(p.values[3]), starts(p.values[4]) {}

Index Heads::visible(Index b, Index i) const {
  const auto length = static_cast<Index>(lengths[static_cast<std::size_t>(b)]);
  if (!causal) return length;
  return std::clamp<Index>(static_cast<Index>(starts[static_cast<std::size_t>(b)]) + i + 1, 0, length);
}

namespace {

/// Puts key j's score on one axis, the only nonzero axis of the queries, so that no other product hides it.
void tile_heads(Problem& problem, bool infinite, Random& random) {
  const Heads a(problem);
  for (float& length : a.lengths)
    if (random.chance(0.4))
      length = static_cast<float>(std::max<Index>(a.t - std::lround(std::exp2(8 * random.uniform())), 0));
  const auto axis = static_cast<Index>(random.below(static_cast<std::uint64_t>(a.d)));
  for (Index b = 0; b < a.batch; ++b)
    for (Index g = 0; g < a.kv_heads; ++g) {
      const TileScores scores(a.t, infinite, random);
      for (Index j = 0; j < a.t; ++j)
        a.k[a.key(b, j, g, axis)] = static_cast<float>(scores(j, random) / problem.params[0]);
    }
  for (std::size_t e = 0; e < a.q.size(); ++e) a.q[e] = static_cast<Index>(e) % a.d == axis ? 1 : 0;
}

}  // namespace

void sensible_heads(Problem& problem, Strategy strategy, Random& random, bool infinite) {
  const Heads a(problem);
  for (std::size_t b = 0; b < a.lengths.size(); ++b) {
    if (random.chance(0.6)) a.lengths[b] = static_cast<float>(a.t);
    else if (random.chance(0.5)) a.lengths[b] = static_cast<float>(tile_edge(std::max<Index>(a.t - 1, 0), random));
    if (random.chance(a.s == a.t ? 0.7 : 0.35)) a.starts[b] = 0;
    else if (random.chance(0.6)) a.starts[b] = a.lengths[b] - static_cast<float>(a.s);
  }
  if (strategy == Strategy::runs) tile_heads(problem, infinite, random);
  // Underflowing weights affect whether NaN reaches the result.
  if (strategy == Strategy::nonfinite && random.chance(0.25))
    for (float& x : a.k) x *= 64;
  if (strategy != Strategy::directed) return;
  const double scale = problem.params[0];
  const auto kind = random.below(11);
  // One axis carries the scores: q on the axis is `along`, and k_j the wanted score of key j divided by `along` and the
  // scale. If q is zero elsewhere (`alone`), each score is one product: the error bound of a sum of d products cannot
  // hide an error.
  const Index axis =
      random.chance(0.5)
          ? static_cast<Index>(random.below(static_cast<std::uint64_t>(a.d)))
          : a.d - 1 - static_cast<Index>(random.below(static_cast<std::uint64_t>(std::min<Index>(a.d, 16))));
  const bool alone = random.chance(kind == 7 || kind == 9 ? 0.75 : 0.25);
  const double along = alone && random.chance(0.5) ? 1 + random.uniform() : 1;
  for (Index b = 0; b < a.batch; ++b)
    for (Index g = 0; g < a.kv_heads; ++g) {
      const double step = random.uniform() * 2, far = std::exp2(5 + 9 * random.uniform());
      const SparseLogits few(a.t, random);
      const Index chosen = random.chance(0.5) ? std::max<Index>(a.t - 1, 0)
                           : a.t > 0          ? static_cast<Index>(random.below(static_cast<std::uint64_t>(a.t)))
                                              : 0;
      for (Index j = 0; j < a.t; ++j) {
        double score = 0;
        switch (kind) {
          case 0: score = step * static_cast<double>(j); break;                 // rising: a new maximum in every tile
          case 1: score = -step * static_cast<double>(j); break;                // the first is the largest
          case 2: score = j == chosen ? 20 : 0; break;                          // a single key matters
          case 3: score = j == chosen ? 89 + 20 * random.uniform() : 0; break;  // the others almost vanish
          case 4: score = static_cast<double>(random.below(2)) * 3; break;      // ties
          case 5: score = 300 + random.gaussian(); break;                       // large, small differences
          case 6: score = 0.01 * random.gaussian(); break;                      // nearly uniform
          case 7:
          case 9: score = few(random); break;               // a short sum
          case 10: score = random.gaussian() - far; break;  // all far below 0
          default: score = 4 * random.gaussian();
        }
        for (Index c = 0; c < a.d; ++c) {
          float& x = a.k[a.key(b, j, g, c)];
          x = c == axis ? static_cast<float>(score / (scale * along)) : x * 0x1p-6F;
          if (kind == 6) a.v[a.key(b, j, g, c)] = 100 + 0x1p-4F * a.v[a.key(b, j, g, c)];
        }
      }
    }
  for (Index b = 0; b < a.batch; ++b)
    for (Index i = 0; i < a.s; ++i)
      for (Index h = 0; h < a.heads; ++h)
        for (Index c = 0; c < a.d; ++c) {
          float& x = a.q[a.query(b, i, h, c)];
          x = c == axis ? static_cast<float>(along) : alone ? 0 : x * 0x1p-3F;
        }
}

Problem weights_of_normal_size(const Trial& trial) {
  Case c = trial.the_case();
  c.strategy = Strategy::gaussian;
  c.values.clear();
  c.params[0] = std::min(c.params[0], 0.125);  // scores stay within a few tens
  return restrict_integers(trial.op(), trial.kernel(),
                           make_problem(trial.op(), c, trial.kernel().arithmetic, trial.kernel().storage));
}

Problem repeated_key_value_heads(const Problem& problem) {
  Problem from = problem, to = problem;
  const Heads a(from);
  to.dims[3] = a.heads;
  for (std::size_t tensor : {1U, 2U}) {
    std::vector<float> repeated;
    repeated.reserve(problem.values[tensor].size() * static_cast<std::size_t>(a.group));
    for (Index b = 0; b < a.batch; ++b)
      for (Index j = 0; j < a.t; ++j)
        for (Index h = 0; h < a.heads; ++h)
          for (Index c = 0; c < a.d; ++c) repeated.push_back(problem.values[tensor][a.key(b, j, h / a.group, c)]);
    to.values[tensor] = std::move(repeated);
  }
  return to;
}

Problem with_unseen_keys_changed(const Problem& problem, Index i, Random& random) {
  Problem changed = problem;
  const Heads a(changed);
  for (Index b = 0; b < a.batch; ++b)
    for (Index j = a.visible(b, i); j < a.t; ++j)
      for (Index g = 0; g < a.kv_heads; ++g)
        for (Index c = 0; c < a.d; ++c)
          for (auto* values : {&a.k, &a.v})
            (*values)[a.key(b, j, g, c)] =
                static_cast<float>(static_cast<std::int64_t>(random.between(-1000, 1000)) | 1);
  return changed;
}

}  // namespace assay::falsify
