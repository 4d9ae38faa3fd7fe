// Inputs and properties shared by attention, its gradient and decoding.
#pragma once

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

/// A call of attention or attention_backward: dims batch, s, t, kv_heads, heads, d, and q, k, v, lengths, starts as the
/// first tensors.
struct Heads {
  explicit Heads(Problem& problem);

  std::size_t query(Index b, Index i, Index h, Index c) const {
    return static_cast<std::size_t>(((b * s + i) * heads + h) * d + c);
  }
  std::size_t key(Index b, Index j, Index g, Index c) const {
    return static_cast<std::size_t>(((b * t + j) * kv_heads + g) * d + c);
  }
  std::size_t row(Index b, Index h, Index i) const { return static_cast<std::size_t>((b * heads + h) * s + i); }
  /// Returns the number of keys that query i of sequence b sees, from the first on.
  Index visible(Index b, Index i) const;

  Index batch, s, t, kv_heads, heads, d, group;
  bool causal;
  std::vector<float>&q, &k, &v, &lengths, &starts;
};

/// Makes most of the sequences as in models: all places used, or queries that are the last positions. For `directed`,
/// makes scores at which online kernels are most sensitive: rising along the keys, the largest first or last, far
/// apart, tied, all equal, or large with small differences; and nearly equal values. For `runs`, makes scores that
/// affect whole tiles (losses.hpp), with -inf if `infinite`, and sequences that end within a tile, or a tile before the
/// last.
void sensible_heads(Problem& problem, Strategy strategy, Random& random, bool infinite = true);

/// Returns a case with weights far above the subnormal range, so that powers of two scale the weighted values bit for
/// bit: a scaled subnormal product rounds differently, and may decide a tie.
Problem weights_of_normal_size(const Trial& trial);

/// Returns the same call with as many key-value heads as query heads, each a copy of its shared head.
Problem repeated_key_value_heads(const Problem& problem);

/// Returns the problem with large finite values in every key and value that query `i` of each sequence does not see,
/// which must change nothing.
Problem with_unseen_keys_changed(const Problem& problem, Index i, Random& random);

}  // namespace assay::falsify
