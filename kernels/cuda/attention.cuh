// Tensors and shared-memory tiles of 64 rows, shared by kernels of attention and its gradients.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/heads.hpp"
// Keep after heads.hpp.
#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// y[b,i,h] = sum_j p_j v[b,j,g], p = softmax(scale q · k) over visible keys, g = h / group; also writes
/// logsumexp[b,h,i]. q, y (batch,s,heads,d), k, v (batch,t,kv_heads,d): S, inner stride 1; lengths, starts (batch);
/// logsumexp (batch,heads,s), inner stride 1. Outputs share no memory with inputs. Offsets take 64 bits.
template <class S>
struct Attention {
  Index batch, s, t, kv_heads, group, d;
  HeadRows<const S> q, k, v;
  const int* lengths;
  const int* starts;
  HeadRows<S> y;
  HeadRows<float> logsumexp;  ///< at(b, i, h)
  float scale;
  bool causal;
  bool q_aligned, k_aligned, v_aligned, y_aligned;  ///< rows start at multiples of four elements
};

template <class S>
bool heads_aligned(const HeadRows<S>& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % (4 * sizeof(S)) == 0 && rows.per_batch % 4 == 0 &&
         rows.per_position % 4 == 0 && rows.per_head % 4 == 0;
}

/// Args: AttentionArgs, or AttentionBackwardArgs, whose y and logsumexp are inputs.
template <class S, class Args>
Attention<S> attention_of(const Args& args) {
  const auto q = head_rows<const S>(args.q), k = head_rows<const S>(args.k), v = head_rows<const S>(args.v);
  const auto y = head_rows<S>(args.y);
  const auto step = [&](int axis) { return args.logsumexp.dim(axis) > 1 ? args.logsumexp.stride(axis) : 0; };
  return {args.batch,
          args.s,
          args.t,
          args.kv_heads,
          args.heads / args.kv_heads,
          args.d,
          q,
          k,
          v,
          args.lengths.data(),
          args.starts.data(),
          y,
          {const_cast<float*>(args.logsumexp.data()), step(0), step(2), step(1)},
          static_cast<float>(args.scale),
          args.causal != 0,
          heads_aligned(q),
          heads_aligned(k),
          heads_aligned(v),
          heads_aligned(y)};
}

/// Returns the reduction over the lanes of a warp that differ in the bits below `lanes`.
template <class Operation>
__device__ inline float across(float x, int lanes) {
  const Operation operation;
  for (int step = lanes / 2; step > 0; step /= 2) x = operation(x, __shfl_xor_sync(0xffffffffU, x, step));
  return x;
}

/// Warps of a block with a row each, and the widest head.
inline constexpr int kWarpQueries = 8, kLargestD = 256;

/// 256 threads for 64 queries, four by four scores a thread. Rows of d elements, padded to kD, are in shared memory at
/// a pitch by which eight threads that read 16 bytes each access different banks.
template <int kD>
struct AttentionTiles {
  static constexpr int kQueries = 64, kKeys = 64, kThreads = 256, kPitch = kD + 4, kWeightPitch = kKeys + 4;
  static constexpr std::size_t kBytes = sizeof(float) * (2 * 64 * kPitch + kQueries * kWeightPitch + 4);
};

/// rows[r] = row(r) scaled for r < count, zeros for other rows and past d; 256 threads, four elements at a time. If
/// `watched` is not null, it becomes 1 if a row from `from` on holds NaN or Inf.
template <int kD, class S, class Row>
__device__ void load_rows(float* rows, Index count, Index d, bool aligned, Row row, Index from = 0,
                          int* watched = nullptr) {
  constexpr int kFours = kD / 4, kPitch = AttentionTiles<kD>::kPitch;
  for (int e = static_cast<int>(threadIdx.x); e < 64 * kFours; e += AttentionTiles<kD>::kThreads) {
    const int r = e / kFours, c = e % kFours * 4;
    float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (r < count && c < d) x = load4(static_cast<const S*>(row(r)), c, d, aligned);
    *reinterpret_cast<float4*>(rows + r * kPitch + c) = x;
    if (watched != nullptr && r >= from && !(x.x * 0.0f + x.y * 0.0f + x.z * 0.0f + x.w * 0.0f == 0.0f)) *watched = 1;
  }
}

__device__ inline float at(const float4& x, int e) { return e == 0 ? x.x : e == 1 ? x.y : e == 2 ? x.z : x.w; }

/// out[i][j] = sum_c x[4 ty + i][c] y[tx + 16 j][c] over rows in shared memory.
template <int kD>
__device__ inline void rows_by_rows(const float* x, const float* y, int ty, int tx, float (&out)[4][4]) {
  constexpr int kPitch = AttentionTiles<kD>::kPitch;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) out[i][j] = 0.0f;
#pragma unroll 4
  for (int c = 0; c < kD; c += 4) {
    float4 left[4], right[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) left[i] = *reinterpret_cast<const float4*>(x + (4 * ty + i) * kPitch + c);
#pragma unroll
    for (int j = 0; j < 4; ++j) right[j] = *reinterpret_cast<const float4*>(y + (tx + 16 * j) * kPitch + c);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        out[i][j] += left[i].x * right[j].x;
        out[i][j] += left[i].y * right[j].y;
        out[i][j] += left[i].z * right[j].z;
        out[i][j] += left[i].w * right[j].w;
      }
  }
}

struct KeepAll {
  __device__ bool operator()(int, int) const { return true; }
};

/// sums[i][4 m + e] += sum_j weights[4 ty + i][j] rows[j][4 tx + 64 m + e] over the j < 64 with takes_part(i, j); other
/// rows may hold NaN.
template <int kD, class TakesPart = KeepAll>
__device__ inline void weights_by_rows(const float* weights, const float* rows, int ty, int tx,
                                       float (&sums)[4][kD / 16], TakesPart takes_part = {}) {
  constexpr int kPitch = AttentionTiles<kD>::kPitch, kWeightPitch = AttentionTiles<kD>::kWeightPitch;
#pragma unroll 2
  for (int j0 = 0; j0 < 64; j0 += 4) {
    float4 weight[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      weight[i] = *reinterpret_cast<const float4*>(weights + (4 * ty + i) * kWeightPitch + j0);
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int m = 0; m < kD / 64; ++m) {
        const float4 value = *reinterpret_cast<const float4*>(rows + (j0 + j) * kPitch + 4 * tx + 64 * m);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (!takes_part(i, j0 + j)) continue;
          sums[i][4 * m] += at(weight[i], j) * value.x;
          sums[i][4 * m + 1] += at(weight[i], j) * value.y;
          sums[i][4 * m + 2] += at(weight[i], j) * value.z;
          sums[i][4 * m + 3] += at(weight[i], j) * value.w;
        }
      }
  }
}

/// Stores factor sums[i][4 m + e] to element 4 tx + 64 m + e of a row of d.
template <int kD, class S>
__device__ inline void store_row(S* row, const float (&sums)[kD / 16], float factor, int tx, Index d, bool aligned) {
#pragma unroll
  for (int m = 0; m < kD / 64; ++m)
    if (4 * tx + 64 * m < d)
      store4(row, 4 * tx + 64 * m, d, aligned,
             make_float4(sums[4 * m] * factor, sums[4 * m + 1] * factor, sums[4 * m + 2] * factor,
                         sums[4 * m + 3] * factor));
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
