// Scaled dot-product attention.
#pragma once

#include <algorithm>
#include <cfloat>
#include <vector>

#include "core/attention_forms.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// Returns the number of keys visible to query i of sequence b: all keys of the sequence, or if causal those up to its
/// own position starts[b] + i.
template <class T>
Index visible_keys(View<const T> lengths, View<const T> starts, bool causal, Index b, Index i) {
  const Index length = whole(lengths(b));
  return causal ? std::clamp<Index>(whole(starts(b)) + i + 1, 0, length) : length;
}

/// y[b,i,h] = sum_j p_j v[b,j,g], p = softmax(scale q[b,i,h] · k[b,j,g]) over visible keys j, and
/// logsumexp[b,h,i] = log sum_j exp(scale q · k), for g = h / (heads / kv_heads), q, y [batch, s, heads, d],
/// k, v [batch, t, kv_heads, d], lengths, starts [batch], logsumexp [batch, heads, s]; y and logsumexp are overwritten
/// and share nothing with the inputs. A query without a visible key, or with scores of -inf only, has y = 0 and
/// logsumexp = -inf. O(batch heads s t d).
/// Source: Vaswani et al., Attention Is All You Need, 2017, equation 1; Ainslie et al., GQA, 2023 (groups of heads).
template <class T>
void attention(View<const T> q, View<const T> k, View<const T> v, View<const T> lengths, View<const T> starts,
               View<T> y, View<T> logsumexp, double scale, double causal) {
  const Index batch = q.dim(0), s = q.dim(1), heads = q.dim(2), d = q.dim(3), group = heads / k.dim(2);
  std::vector<T> scores(static_cast<std::size_t>(k.dim(1))), weights = scores;
  const View<T> score(scores.data(), Shape{k.dim(1)}), weight(weights.data(), Shape{k.dim(1)});
  for (Index b = 0; b < batch; ++b)
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < s; ++i) {
        const Index keys = visible_keys(lengths, starts, causal != 0, b, i);
        T largest(-INFINITY);
        for (Index j = 0; j < keys; ++j) {
          ScaledDot<T> dot{T(scale)};
          for (Index c = 0; c < d; ++c) dot.add(q(b, i, h, c), k(b, j, h / group, c));
          score(j) = dot.value();
          largest = maximum(largest, score(j));
        }
        const T shift = shift_by(less(largest, T(-FLT_MAX)) ? T(0) : largest);
        const Rescalings<T> rescalings(keys, score);
        for (Index j = 0; j < keys; ++j) weight(j) = attention_weight(score(j), shift, rescalings.of(score(j)));
        const WeightedMean<T> mean({weights.data(), Shape{keys}}, shift);
        const bool nothing = less(mean.weight(), T(0.5));  // the weight of the largest score is 1
        logsumexp(b, h, i) = nothing ? without_weight(-INFINITY, mean.weight()) : log_of_sum(shift, mean.weight());
        for (Index c = 0; c < d; ++c)
          y(b, i, h, c) =
              nothing ? without_weight(0, mean.weight()) : mean.of([&](Index j) { return v(b, j, h / group, c); });
      }
}

}  // namespace assay::reference
