// Kernel-side addressing of [batch, position, head, element] tensors, and the causal mask.
#pragma once

#include "core/view.hpp"

#if defined(__CUDACC__)
#define ASSAY_HOST_DEVICE __host__ __device__
#else
#define ASSAY_HOST_DEVICE
#endif

namespace assay {

/// Rows of d elements at inner stride 1; the outer axes may lie in any order of memory. Offsets take 64 bits.
template <class S>
struct HeadRows {
  S* data;
  Index per_batch, per_position, per_head;

  ASSAY_HOST_DEVICE S* at(Index b, Index i, Index h) const {
    return data + b * per_batch + i * per_position + h * per_head;
  }
};

/// Strides of axes of extent 1 are meaningless and taken as 0.
template <class S>
HeadRows<S> head_rows(const StorageView& v) {
  const auto step = [&](int axis) { return v.dim(axis) > 1 ? v.stride(axis) : 0; };
  return {static_cast<S*>(v.data()), step(0), step(1), step(2)};
}

/// Returns the number of leading keys that query i of a sequence sees.
ASSAY_HOST_DEVICE inline Index keys_seen(bool causal, Index length, Index start, Index i) {
  if (!causal) return length;
  const Index seen = start + i + 1;
  return seen < 0 ? 0 : seen < length ? seen : length;
}

}  // namespace assay
