// Inputs and properties shared by attention, its gradient and decoding.
#pragma once

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

/// A call of attention or attention_backward: dims batch, s, t, kv_heads, heads, d, and tensors q, k, v, lengths, starts first.
struct Heads {
  explicit Heads(Problem& problem);

  std::size_t query(Index b, Index i, Index h, Index c) const {
    return static_cast<std::size_t>(((b * s + i) * heads + h) * d + c);
  }
  std::size_t key(Index b, Index j, Index g, Index c) const { return static_cast<std::size_t>(((b * t + j) * kv_heads + g) * d + c); }
  std::size_t row(Index b, Index h, Index i) const { return static_cast<std::size_t>((b * heads + h) * s + i); }
  /// Keys that query i of sequence b sees: the first so many.
  Index visible(Index b, Index i) const;

  Index batch, s, t, kv_heads, heads, d, group;
  bool causal;
  std::vector<float>&q, &k, &v, &lengths, &starts;
};

/// Most of the sequences as models have them: all places used, or queries that are the last positions. For `directed`,
/// scores at which online kernels are most sensitive: rising along the keys, the largest first or last, far apart, tied, all
/// alike, or large with small differences; and values that are nearly alike. For `runs`, scores that only tiles show (losses.hpp), -inf among
/// them where `infinite`, and sequences that end within a tile, or a tile before the last.
void sensible_heads(Problem& problem, Strategy strategy, Random& random, bool infinite = true);

/// A case whose weights stay far from the smallest numbers, so that powers of two scale what they weigh bit for bit: a subnormal
/// product is rounded otherwise when it is scaled, and may decide a tie.
Problem weights_of_normal_size(const Trial& trial);

/// The same call with as many key-value heads as query heads, each a copy of the one it stood for.
Problem repeated_key_value_heads(const Problem& problem);

/// Values that change nothing: finite and large in every key and value that query number `i` of each sequence does not
/// see.
Problem unseen_changed(const Problem& problem, Index i, Random& random);

}  // namespace assay::falsify
