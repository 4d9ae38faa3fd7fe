// New rows of a cache of keys or values.
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// cache[b,lengths[b] + i,g,c] = x[b,i,g,c] for x [batch, rows, kv_heads, d], lengths [batch], cache [batch, spare +
/// rows, kv_heads, d]; other places keep what they hold. O(size of x).
/// Source: Shazeer, Fast Transformer Decoding, 2019, section 2.4 (incremental decoding).
template <class T>
void cache_append(View<const T> x, View<const T> lengths, View<T> cache) {
  for (Index b = 0; b < x.dim(0); ++b)
    for (Index i = 0; i < x.dim(1); ++i)
      for (Index g = 0; g < x.dim(2); ++g)
        for (Index c = 0; c < x.dim(3); ++c) cache(b, whole(lengths(b)) + i, g, c) = x(b, i, g, c);
}

}  // namespace assay::reference
