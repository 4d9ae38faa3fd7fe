// Properties of attention_decode (obligations of contracts/attention_decode.yaml).
#include "attention_decode_obligations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/half.hpp"
#include "falsify/properties/shared/heads.hpp"
#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {
namespace attention_decode {
namespace {

enum Tensor { kQ, kK, kV, kLengths, kKCache, kVCache, kY };
/// Indices of a run's outputs.
enum Output { kNewKCache, kNewVCache, kResult };

/// A call: its dims, and access to its elements.
struct Decode {
  explicit Decode(Problem& p)
      : batch(p.dims[0]), capacity(p.dims[1]), kv_heads(p.dims[2]), heads(p.dims[3]), d(p.dims[4]),
        lengths(p.values[kLengths]), row{&p.values[kK], &p.values[kV]}, cache{&p.values[kKCache], &p.values[kVCache]} {}

  Index width() const { return kv_heads * d; }
  Index length(Index b) const { return static_cast<Index>(lengths[static_cast<std::size_t>(b)]); }
  /// Iterators to element 0 of the new row, and of a place in the cache; `which` is 0 for keys, 1 for values.
  auto new_row(int which, Index b) const { return row[which]->begin() + b * width(); }
  auto place(int which, Index b, Index j) const { return cache[which]->begin() + (b * capacity + j) * width(); }

  Index batch, capacity, kv_heads, heads, d;
  std::vector<float>& lengths;
  std::vector<float>*row[2], *cache[2];
};

/// Writes the new rows to their places: the caches after the call.
void append(Problem& problem) {
  const Decode a(problem);
  for (int which : {0, 1})
    for (Index b = 0; b < a.batch; ++b) std::copy_n(a.new_row(which, b), a.width(), a.place(which, b, a.length(b)));
}

/// Returns the call of attention over whole prefixes whose last rows equal the result of attention_decode.
Problem as_attention(Problem problem) {
  append(problem);
  const Decode a(problem);
  Problem whole{&operation("attention"),
                {a.batch, 1, a.capacity, a.kv_heads, a.heads, a.d},
                {problem.params[0], 1},
                {},
                problem.storage};
  std::vector<float> keys = a.lengths;
  for (float& length : keys) length += 1;
  whole.values = {
      problem.values[kQ], problem.values[kKCache], problem.values[kVCache], std::move(keys), a.lengths, {}, {}};
  return whole;
}

/// Compares the caches after a call, bit for bit.
Outcome caches_hold(const Problem& before, const Run& run) {
  Problem after = before;
  append(after);
  Outcome outcome = compare_bits("k_cache", before.shape(kKCache), run.outputs[kNewKCache], after.values[kKCache],
                                 "the new key at its place, every other as it was");
  outcome &= compare_bits("v_cache", before.shape(kVCache), run.outputs[kNewVCache], after.values[kVCache],
                          "the new value at its place, every other as it was");
  return outcome;
}

/// Compares y with attention over the whole prefixes.
Outcome attends(const Trial& trial, const Problem& problem, const Run& run) {
  const auto want = trial.oracle(as_attention(problem));
  return compare(Tier::worst_case, "y", problem.shape(kY), run.outputs[kResult], want[0], problem.dtype(kY));
}

Outcome agree(const Trial& trial, const Problem& problem, const Run& run, const Run& other) {
  return same_within("y", problem.shape(kY), widened(other.outputs[kResult]), widened(run.outputs[kResult]),
                     trial.oracle(problem)[kResult]);
}

void draw(std::vector<float>& values, const Problem& problem, Random& random) {
  for (float& x : values) x = stored(problem.storage, static_cast<float>(random.gaussian()));
}

}  // namespace
}  // namespace attention_decode

/// Makes lengths at both ends, or all equal. Directed: scores at which online kernels are most sensitive.
void attention_decode::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  const Decode a(problem);
  const bool full = random.chance(0.2);
  for (float& length : a.lengths) {
    if (full || random.chance(0.3)) length = static_cast<float>(a.capacity - 1);
    else if (random.chance(0.1)) length = 0;
    else if (random.chance(0.3)) length = static_cast<float>(std::max<Index>(tile_edge(a.capacity, random) - 1, 0));
  }
  if (strategy != Strategy::directed && strategy != Strategy::runs) return;
  Problem whole = as_attention(problem);
  sensible_heads(whole, strategy, random);
  problem.values[kQ] = whole.values[0];
  for (int which : {0, 1}) {
    *a.cache[which] = whole.values[static_cast<std::size_t>(which + 1)];
    for (Index b = 0; b < a.batch; ++b) std::copy_n(a.place(which, b, a.length(b)), a.width(), a.new_row(which, b));
  }
}

Outcome attention_decode::batch_slicing(Trial& trial) { return rows_are_independent(trial); }

Outcome attention_decode::repeated_heads(Trial& trial) {
  const Problem shared = trial.problem();
  Problem repeated = shared;
  const auto group = static_cast<std::size_t>(shared.dims[3] / shared.dims[2]),
             d = static_cast<std::size_t>(shared.dims[4]);
  repeated.dims[2] = shared.dims[3];
  for (std::size_t tensor : {kK, kV, kKCache, kVCache}) {
    std::vector<float> rows;
    rows.reserve(shared.values[tensor].size() * group);
    for (auto head = shared.values[tensor].begin(); head != shared.values[tensor].end();
         head += static_cast<std::ptrdiff_t>(d))
      for (std::size_t copy = 0; copy < group; ++copy)
        rows.insert(rows.end(), head, head + static_cast<std::ptrdiff_t>(d));
    repeated.values[tensor] = std::move(rows);
  }
  const Run run = trial.run(shared), other = trial.run(repeated);
  return agree(trial, shared, run, other);
}

/// Runs several steps on one cache, with sequences at different lengths: each continues, restarts, returns to an
/// earlier place, or repeats its last place. The model keeps the appended rows; every step is compared with it.
Outcome attention_decode::decode_is_prefill(Trial& trial) {
  constexpr int kSteps = 5;
  Problem problem = trial.problem();
  Random random = trial.random("steps");
  Outcome outcome;
  for (int step = 0; step < kSteps; ++step) {
    const Run run = trial.run(problem);
    outcome &= caches_hold(problem, run);
    outcome &= attends(trial, problem, run);
    if (outcome.finding) break;
    const Decode a(problem);
    *a.cache[0] = run.outputs[kNewKCache];
    *a.cache[1] = run.outputs[kNewVCache];
    for (Index b = 0; b < a.batch; ++b) {
      float& length = a.lengths[static_cast<std::size_t>(b)];
      const double p = random.uniform();
      if (p < 0.15 || (p < 0.9 && a.length(b) + 1 >= a.capacity)) length = 0;
      else if (p < 0.9) length += 1;
      else if (p < 0.95) length = static_cast<float>(random.below(static_cast<std::uint64_t>(a.length(b)) + 1));
    }
    for (std::size_t tensor : {kQ, kK, kV}) draw(problem.values[tensor], problem, random);
  }
  return outcome;
}

Outcome attention_decode::last_place(Trial& trial) {
  Problem problem = trial.problem();
  const Decode a(problem);
  std::ranges::fill(a.lengths, static_cast<float>(a.capacity - 1));
  const Run run = trial.run(problem);
  Outcome outcome = caches_hold(problem, run);
  outcome &= attends(trial, problem, run);
  return outcome;
}

/// The place of the new row counts as past the end: its old content is overwritten.
Outcome attention_decode::past_the_end(Trial& trial) {
  Problem plain = trial.problem();
  Random random = trial.random("stale");
  const Decode a(plain);
  if (random.chance(0.5))
    for (float& length : a.lengths) length = std::floor(length / 2);
  Problem changed = plain;
  const Decode to(changed);
  const auto kind = random.below(3);
  for (Index b = 0; b < to.batch; ++b)
    for (int which : {0, 1})
      for (Index at = to.length(b) * to.width(); at < to.capacity * to.width(); ++at)
        to.place(which, b, 0)[at] = kind == 0 ? std::numeric_limits<float>::quiet_NaN()
                                    : kind == 1
                                        ? static_cast<float>(random.sign()) * std::numeric_limits<float>::infinity()
                                        : static_cast<float>(static_cast<int>(random.between(-100, 100)) | 1);
  const Run run = trial.run(plain), other = trial.run(changed);
  Outcome outcome = trial.related(compare_bits("y", plain.shape(kY), other.outputs[kResult], run.outputs[kResult],
                                               "after what stands at places past the end has changed"),
                                  Related::always, {{plain, run}, {changed, other}});
  outcome &= caches_hold(changed, other);
  return outcome;
}

Outcome attention_decode::cache_bits(Trial& trial) {
  static constexpr Strategy kStrategies[] = {Strategy::nonfinite, Strategy::gaussian, Strategy::signed_zeros,
                                             Strategy::subnormal};
  const Problem problem = trial.problem(kStrategies[trial.random("strategy").below(std::size(kStrategies))]);
  return caches_hold(problem, trial.run(problem));
}

Outcome attention_decode::key_permutation(Trial& trial) {
  const Problem plain = trial.problem();
  Problem permuted = plain, from = plain;
  append(from);
  const Decode a(from), to(permuted);
  Random random = trial.random("permutation");
  for (Index b = 0; b < a.batch; ++b) {
    std::vector<Index> place(static_cast<std::size_t>(a.length(b)) + 1);
    std::iota(place.begin(), place.end(), Index{0});
    for (std::size_t i = place.size(); i > 1; --i) std::swap(place[i - 1], place[random.below(i)]);
    for (std::size_t j = 0; j < place.size(); ++j)
      for (int which : {0, 1})
        std::copy_n(a.place(which, b, static_cast<Index>(j)), a.width(),
                    place[j] == a.length(b) ? to.new_row(which, b) : to.place(which, b, place[j]));
  }
  const Run run = trial.run(plain), other = trial.run(permuted);
  return agree(trial, plain, run, other);
}

audit::Subject attention_decode::audited() {
  return {
      .sums = {{.says = "y[0,0,0] over places",
                .terms = audit::Terms::values,
                .dims = {1, 64, 1, 1, 16},
                .count = 63,
                .left = {kVCache, 0, 16},
                .result = {kY},
                .scale = 1.0 / 64,
                .background =
                    [](Problem& p) { p.values[kLengths][0] = static_cast<float>(p.dims[1] - 1), p.params[0] = 1; }}},
      .dims = {2, 70, 2, 4, 20}};
}

}  // namespace assay::falsify
