// Arguments of the kernels of attention's gradients; dq of one row, and dk and dv of one key, by a warp.
#pragma once

#include "kernels/cuda/attention.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::attention_backward {

/// dq, dk, dv of y = attention(q, k, v) for upstream dy, with p = exp(scale q · k - logsumexp) and ds = p (dy · v - dy
/// · y). Shapes as in Attention. Gradients are overwritten and share no memory with the inputs. Offsets take 64 bits. The
/// order of sums depends on the shape alone.
template <class S>
struct AttentionBackward {
  Attention<S> forward;  ///< y: read only
  HeadRows<const S> dy;
  HeadRows<S> dq, dk, dv;
  bool dy_aligned, dq_aligned, dk_aligned, dv_aligned;
  Index pitch;             ///< rows of a head in scratch, at least s
  float* along = nullptr;  ///< scratch (batch,heads,pitch), dense: dy · y; zeros from row s on
  float* shift = nullptr;  ///< null, or scratch like it: logsumexp log2 e; inf for rows that take no part
};

/// Returns the head of row `row` (query row / group) of a key-value head.
template <class S>
__device__ Index head_of(const Attention<S>& a, Index g, Index row) {
  return g * a.group + row % a.group;
}

/// Returns the number of keys that query i of a sequence sees; 0 if its logsumexp is -inf.
template <class S>
__device__ Index pairs_of(const Attention<S>& a, Index b, Index i, float logsumexp) {
  if (logsumexp == -INFINITY) return 0;
  return keys_seen(a.causal, a.lengths[b], a.starts[b], i);
}

/// Returns the first row that may see key j.
template <class S>
__device__ Index first_row_of_keys(const Attention<S>& a, Index b, Index j) {
  const Index position = a.causal ? j - a.starts[b] : 0;
  return position <= 0 ? 0 : position * a.group;
}

/// Per-row scalars of the gradient.
struct QueryRow {
  float logsumexp, along;  ///< along: dy · y
  Index keys;              ///< number of keys that the row sees
};
/// Returns the scalars of row `row` of a key-value head; rows from `rows` on see no key.
template <class S>
__device__ QueryRow query_row(const AttentionBackward<S>& p, Index b, Index g, Index row, Index rows) {
  if (row >= rows) return {-INFINITY, 0.0f, 0};
  const Attention<S>& a = p.forward;
  const Index h = head_of(a, g, row), i = row / a.group;
  const float logsumexp = *a.logsumexp.at(b, i, h);
  return {logsumexp, p.along[(b * a.kv_heads * a.group + h) * p.pitch + i], pairs_of(a, b, i, logsumexp)};
}

/// p and ds of a row and a key visible to it, by one thread.
struct Pair {
  float weight, ds;
};
template <class S>
__device__ Pair pair_of(const AttentionBackward<S>& p, Index b, Index g, Index row, Index j, const QueryRow& known) {
  const Attention<S>& a = p.forward;
  const Index h = head_of(a, g, row), i = row / a.group;
  const S *const q = a.q.at(b, i, h), *const dy = p.dy.at(b, i, h), *const k = a.k.at(b, j, g),
                 *const v = a.v.at(b, j, g);
  float score = 0.0f, dp = 0.0f;
  for (Index c = 0; c < a.d; ++c) {
    score += load(q[c]) * load(k[c]);
    dp += load(dy[c]) * load(v[c]);
  }
  const float weight = expf(score * a.scale - known.logsumexp);
  return {weight, weight * (dp - known.along)};
}

/// dq of one row by a warp: lanes split the scores 32 keys at a time, then the elements.
template <class S>
__device__ void query_gradient(const AttentionBackward<S>& p, Index b, Index g, Index row) {
  const Attention<S>& a = p.forward;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const QueryRow known = query_row(p, b, g, row, a.s * a.group);
  float sums[kLargestD / 32] = {};
  for (Index first = 0; first < known.keys; first += 32) {
    const float own = first + lane < known.keys ? pair_of(p, b, g, row, first + lane, known).ds : 0.0f;
    for (int n = 0; n < 32 && first + n < known.keys; ++n) {
      const float ds = __shfl_sync(0xffffffffU, own, n);
      const S* const k = a.k.at(b, first + n, g);
#pragma unroll
      for (int e = 0; e < kLargestD / 32; ++e)
        if (lane + 32 * e < a.d) sums[e] += ds * load(k[lane + 32 * e]);
    }
  }
  S* const dq = p.dq.at(b, row / a.group, head_of(a, g, row));
#pragma unroll
  for (int e = 0; e < kLargestD / 32; ++e)
    if (lane + 32 * e < a.d) store(dq[lane + 32 * e], sums[e] * a.scale);
}

/// Computes `columns` elements from `from` on of dk and dv of one key by a warp: lanes split the scores 32 rows at a
/// time, then the elements.
template <class S>
__device__ void key_gradients(const AttentionBackward<S>& p, Index b, Index g, Index j, Index from, Index columns) {
  const Attention<S>& a = p.forward;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Index rows = a.s * a.group;
  float of_key[kLargestD / 32] = {}, of_value[kLargestD / 32] = {};
  for (Index first = j < a.lengths[b] ? first_row_of_keys(a, b, j) : rows; first < rows; first += 32) {
    const QueryRow known = query_row(p, b, g, first + lane, rows);
    const bool sees = j < known.keys;
    const Pair own = sees ? pair_of(p, b, g, first + lane, j, known) : Pair{0.0f, 0.0f};
    const unsigned seeing = __ballot_sync(0xffffffffU, sees);
    for (int n = 0; n < 32; ++n) {
      if (!(seeing >> n & 1U)) continue;
      const float weight = __shfl_sync(0xffffffffU, own.weight, n), ds = __shfl_sync(0xffffffffU, own.ds, n);
      const Index i = (first + n) / a.group, h = head_of(a, g, first + n);
      const S *const q = a.q.at(b, i, h) + from, *const dy = p.dy.at(b, i, h) + from;
#pragma unroll
      for (int e = 0; e < kLargestD / 32; ++e)
        if (lane + 32 * e < columns) {
          of_key[e] += ds * load(q[lane + 32 * e]);
          of_value[e] += weight * load(dy[lane + 32 * e]);
        }
    }
  }
  S *const dk = p.dk.at(b, j, g) + from, *const dv = p.dv.at(b, j, g) + from;
#pragma unroll
  for (int e = 0; e < kLargestD / 32; ++e)
    if (lane + 32 * e < columns) {
      store(dk[lane + 32 * e], of_key[e] * a.scale);
      store(dv[lane + 32 * e], of_value[e]);
    }
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE::attention_backward
