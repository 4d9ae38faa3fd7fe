// Attention of one position against a cache of keys and values.
#pragma once

#include "reference/attention.hpp"

namespace assay::reference {

/// Writes k[b] and v[b] to position lengths[b] of the caches, then y[b,h] = sum_j p_j v_cache[b,j,g] over positions j
/// <= lengths[b], p = softmax(scale q[b,h] · k_cache[b,j,g]), g = h / (heads / kv_heads). q, y [batch, heads, d], k, v
/// [batch, kv_heads, d], caches [batch, capacity, kv_heads, d], lengths [batch]; y is overwritten. O(batch heads
/// capacity d).
/// Source: Vaswani et al., 2017, equation 1; Shazeer, Fast Transformer Decoding, 2019, section 2.4 (incremental
/// decoding).
template <class T>
void attention_decode(View<const T> q, View<const T> k, View<const T> v, View<const T> lengths, View<T> k_cache,
                      View<T> v_cache, View<T> y, double scale) {
  const Index batch = q.dim(0), heads = q.dim(1), d = q.dim(2);
  for (Index b = 0; b < batch; ++b) {
    const Index last = whole(lengths(b));
    for (Index g = 0; g < k.dim(1); ++g)
      for (Index c = 0; c < d; ++c) {
        k_cache(b, last, g, c) = k(b, g, c);
        v_cache(b, last, g, c) = v(b, g, c);
      }
    std::vector<T> logsumexp(static_cast<std::size_t>(heads));
    const std::vector<T> length{T(static_cast<double>(last + 1))}, start{T(0)};
    attention<T>({q.data() + b * q.stride(0), Shape{1, 1, heads, d}, Shape{0, 0, q.stride(1), q.stride(2)}},
                 {k_cache.data() + b * k_cache.stride(0), Shape{1, k_cache.dim(1), k.dim(1), d}, k_cache.strides()},
                 {v_cache.data() + b * v_cache.stride(0), Shape{1, v_cache.dim(1), k.dim(1), d}, v_cache.strides()},
                 {length.data(), Shape{1}, Shape{1}}, {start.data(), Shape{1}, Shape{1}},
                 {y.data() + b * y.stride(0), Shape{1, 1, heads, d}, Shape{0, 0, y.stride(1), y.stride(2)}},
                 {logsumexp.data(), Shape{1, heads, 1}, Shape{heads, 1, 1}}, scale, 0);
  }
}

}  // namespace assay::reference
