// Attention of one query by a warp.
#pragma once

#include "kernels/cuda/attention.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::attention_query {

/// Returns the number of keys that query i of sequence b sees.
template <class S>
__device__ Index seen_by(const Attention<S>& a, Index b, Index i) {
  return keys_seen(a.causal, a.lengths[b], a.starts[b], i);
}

/// Computes one query by a warp: lanes split the scores 32 keys at a time, then the elements of the mean.
template <class S>
__device__ void attend_query(const Attention<S>& a, Index b, Index h, Index i) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Index g = h / a.group;
  const Index keys = seen_by(a, b, i);
  const S* const q = a.q.at(b, i, h);
  float sums[kLargestD / 32] = {}, largest = -INFINITY, total = 0.0f;
  for (Index first = 0; first < keys; first += 32) {
    const Index j = first + lane;
    float score = -INFINITY;
    if (j < keys) {
      const S* const k = a.k.at(b, j, g);
      float dot = 0.0f;
      for (Index c = 0; c < a.d; ++c) dot += load(q[c]) * load(k[c]);
      score = dot * a.scale;
    }
    const Larger larger;
    const float grown = larger(largest, across<Larger>(score, 32));
    const float shift = grown == -INFINITY ? 0.0f : grown;
    const float weight = j < keys ? expf(score - shift) : 0.0f;
    if (largest < grown && largest > -INFINITY) {
      const float factor = expf(largest - grown);
      total *= factor;
      for (float& sum : sums) sum *= factor;
    }
    largest = grown;
    total += across<Plus>(weight, 32);
    for (int n = 0; n < 32 && first + n < keys; ++n) {
      const float of_key = __shfl_sync(0xffffffffU, weight, n);
      const S* const v = a.v.at(b, first + n, g);
#pragma unroll
      for (int e = 0; e < kLargestD / 32; ++e)
        if (lane + 32 * e < a.d) sums[e] += of_key * load(v[lane + 32 * e]);
    }
  }
  const bool nothing = total == 0.0f;
  S* const y = a.y.at(b, i, h);
#pragma unroll
  for (int e = 0; e < kLargestD / 32; ++e)
    if (lane + 32 * e < a.d) store(y[lane + 32 * e], nothing ? 0.0f : sums[e] / total);
  if (lane == 0) *a.logsumexp.at(b, i, h) = nothing ? -INFINITY : largest + logf(total);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE::attention_query
