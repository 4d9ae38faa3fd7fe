// Attention with an online softmax: what its kernels share, a warp for a query, and tiles of 64 queries by 64 keys.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/heads.hpp"
// After heads.hpp.
#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// y[b,i,h] = sum_j p_j v[b,j,g], p = softmax(scale q · k) over visible keys, g = h / group; logsumexp[b,h,i] beside it. q, y
/// (batch,s,heads,d), k, v (batch,t,kv_heads,d): S, inner stride 1; lengths, starts (batch); logsumexp (batch,heads,s), inner
/// stride 1. Outputs share no memory with inputs. Offsets take 64 bits.
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

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class AttentionFault {
  none,
  no_barrier_before_values,
  no_barrier_before_keys,
  no_wait,
  sum_not_rescaled,
  mean_not_rescaled,
  mask_off_by_one,
  mask_absent,
  lengths_ignored,
  heads_by_modulo,
  scale_by_d,
  tile_tail_dropped,
  masked_row_nan,
  masked_values_multiplied,
  logsumexp_unwritten,
  half_the_lanes_lost,
  first_sequence_only,
  keys_by_query_count,
};

template <class S>
bool heads_aligned(const HeadRows<S>& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % (4 * sizeof(S)) == 0 && rows.per_batch % 4 == 0 && rows.per_position % 4 == 0 &&
         rows.per_head % 4 == 0;
}

/// Args: AttentionArgs, or AttentionBackwardArgs, whose y and logsumexp are only read.
template <class S, class Args>
Attention<S> attention_of(const Args& args) {
  const auto q = head_rows<const S>(args.q), k = head_rows<const S>(args.k), v = head_rows<const S>(args.v);
  const auto y = head_rows<S>(args.y);
  const auto step = [&](int axis) { return args.logsumexp.dim(axis) > 1 ? args.logsumexp.stride(axis) : 0; };
  return {args.batch,  args.s,     args.t, args.kv_heads, args.heads / args.kv_heads, args.d, q, k, v, args.lengths.data(),
          args.starts.data(), y, {const_cast<float*>(args.logsumexp.data()), step(0), step(2), step(1)}, static_cast<float>(args.scale),
          args.causal != 0, heads_aligned(q), heads_aligned(k), heads_aligned(v), heads_aligned(y)};
}

/// Keys that query i of sequence b sees.
template <AttentionFault fault, class S>
__device__ Index seen_by(const Attention<S>& a, Index b, Index i) {
  const Index length = fault == AttentionFault::lengths_ignored ? a.t : a.lengths[b];
  if (fault == AttentionFault::mask_absent) return length;
  const Index start = fault == AttentionFault::keys_by_query_count ? a.t - a.s : a.starts[b];
  return keys_seen(a.causal, length, start, fault == AttentionFault::mask_off_by_one ? i + 1 : i);
}

/// Sum over the lanes of a warp that differ in the bits below `lanes`.
template <class Operation>
__device__ inline float across(float x, int lanes) {
  const Operation operation;
  for (int step = lanes / 2; step > 0; step /= 2) x = operation(x, __shfl_xor_sync(0xffffffffU, x, step));
  return x;
}

inline constexpr int kWarpQueries = 8, kLargestD = 256;

/// One query by a warp: a lane for each of 32 keys at a time, then for every 32nd element of the mean.
template <AttentionFault fault, class S>
__device__ void attend_query(const Attention<S>& a, Index b, Index h, Index i) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Index g = fault == AttentionFault::heads_by_modulo ? h % a.kv_heads : h / a.group;
  const Index keys = seen_by<fault>(a, b, i);
  const S* const q = a.q.at(b, i, h);
  float sums[kLargestD / 32] = {}, largest = -INFINITY, total = 0.0f;
  for (Index first = 0; first < keys; first += 32) {
    const Index j = first + lane;
    float score = -INFINITY;
    if (j < keys) {
      const S* const k = a.k.at(b, j, g);
      float dot = 0.0f;
      for (Index c = 0; c < a.d; ++c) dot += load(q[c]) * load(k[c]);
      score = dot * (fault == AttentionFault::scale_by_d ? rsqrtf(static_cast<float>(a.d)) : a.scale);
    }
    const Larger larger;
    const float grown = larger(largest, across<Larger>(score, 32));
    const float shift = grown == -INFINITY ? 0.0f : grown;
    const float weight = j < keys ? expf(score - shift) : 0.0f;
    if (largest < grown && largest > -INFINITY) {
      const float factor = expf(largest - grown);
      if (fault != AttentionFault::sum_not_rescaled) total *= factor;
      for (float& sum : sums)
        if (fault != AttentionFault::mean_not_rescaled) sum *= factor;
    }
    largest = grown;
    total += across<Plus>(weight, fault == AttentionFault::half_the_lanes_lost ? 16 : 32);
    for (int n = 0; n < 32 && first + n < keys; ++n) {
      const float of_key = __shfl_sync(0xffffffffU, weight, n);
      const S* const v = a.v.at(b, first + n, g);
#pragma unroll
      for (int e = 0; e < kLargestD / 32; ++e)
        if (lane + 32 * e < a.d) sums[e] += of_key * load(v[lane + 32 * e]);
    }
  }
  const bool nothing = total == 0.0f && fault != AttentionFault::masked_row_nan;
  S* const y = a.y.at(b, i, h);
#pragma unroll
  for (int e = 0; e < kLargestD / 32; ++e)
    if (lane + 32 * e < a.d) store(y[lane + 32 * e], nothing ? 0.0f : sums[e] / total);
  if (lane == 0 && fault != AttentionFault::logsumexp_unwritten)
    *a.logsumexp.at(b, i, h) = nothing ? -INFINITY : largest + logf(total);
}

template <class S, AttentionFault fault>
__global__ void __launch_bounds__(32 * kWarpQueries) attention_warp(Attention<S> a) {
  const Index heads = a.kv_heads * a.group;
  const Index number = Index{blockIdx.x} * kWarpQueries + static_cast<int>(threadIdx.x) / 32;
  if (number < a.batch * a.s * heads) attend_query<fault>(a, number / heads / a.s, number % heads, number / heads % a.s);  // whole warps
}

/// 256 threads for 64 queries, four by four scores a thread. Rows of d elements, padded to kD, lie in shared memory at a
/// pitch by which eight threads that read 16 bytes each meet different banks.
template <int kD>
struct AttentionTiles {
  static constexpr int kQueries = 64, kKeys = 64, kThreads = 256, kPitch = kD + 4, kWeightPitch = kKeys + 4;
  static constexpr std::size_t kBytes = sizeof(float) * (2 * 64 * kPitch + kQueries * kWeightPitch + 4);
};

/// rows[r] = row(r) scaled for r < count, zeros behind and past d; 256 threads, four elements at a time. Where `watched` is
/// not null, it becomes 1 if a row from `from` on holds NaN or Inf.
template <int kD, class S, class Row>
__device__ void load_rows(float* rows, Index count, Index d, bool aligned, Row row, Index from = 0, int* watched = nullptr) {
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

struct AllTakePart {
  __device__ bool operator()(int, int) const { return true; }
};

/// sums[i][4 m + e] += sum_j weights[4 ty + i][j] rows[j][4 tx + 64 m + e], j < 64, over the j of which takes_part(i, j): the
/// others may hold NaN.
template <int kD, class TakesPart = AllTakePart>
__device__ inline void weights_by_rows(const float* weights, const float* rows, int ty, int tx, float (&sums)[4][kD / 16],
                                       TakesPart takes_part = {}) {
  constexpr int kPitch = AttentionTiles<kD>::kPitch, kWeightPitch = AttentionTiles<kD>::kWeightPitch;
#pragma unroll 2
  for (int j0 = 0; j0 < 64; j0 += 4) {
    float4 weight[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) weight[i] = *reinterpret_cast<const float4*>(weights + (4 * ty + i) * kWeightPitch + j0);
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

/// factor sums[i][4 m + e] to element 4 tx + 64 m + e of a row of d.
template <int kD, class S>
__device__ inline void store_row(S* row, const float (&sums)[kD / 16], float factor, int tx, Index d, bool aligned) {
#pragma unroll
  for (int m = 0; m < kD / 64; ++m)
    if (4 * tx + 64 * m < d)
      store4(row, 4 * tx + 64 * m, d, aligned,
             make_float4(sums[4 * m] * factor, sums[4 * m + 1] * factor, sums[4 * m + 2] * factor, sums[4 * m + 3] * factor));
}

/// A block for 64 rows of one key-value head: query i of head h of the group is row i * group + h, so that the heads of a group
/// share what is loaded. Keys, then values of the same 64 places, pass through one buffer.
template <class S, int kD, AttentionFault fault>
__global__ void __launch_bounds__(256) attention_tiled(Attention<S> a) {
  using Tiles = AttentionTiles<kD>;
  float* const queries = dynamic_shared<float>();
  float* const tile = queries + 64 * Tiles::kPitch;
  float* const weights = tile + 64 * Tiles::kPitch;
  int* const special = reinterpret_cast<int*>(weights + Tiles::kQueries * Tiles::kWeightPitch);
  const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
  // Later blocks see more keys: they start first.
  const Index first_row = (Index{gridDim.x} - 1 - blockIdx.x) * Tiles::kQueries, rows = a.s * a.group;
  const Index b = blockIdx.z, g = blockIdx.y;
  const auto head = [&](Index row) { return fault == AttentionFault::heads_by_modulo ? row % a.group * a.kv_heads + g : g * a.group + row % a.group; };
  const Index count = rows - first_row < Tiles::kQueries ? rows - first_row : Tiles::kQueries;
  // Rows are in the order of their positions, and so of the keys that they see.
  const Index least = seen_by<fault>(a, b, first_row / a.group);
  const Index most = seen_by<fault>(a, b, (first_row + count - 1) / a.group);

  load_rows<kD, S>(queries, count, a.d, a.q_aligned, [&](int r) { return a.q.at(b, (first_row + r) / a.group, head(first_row + r)); });
  float sums[4][kD / 16] = {}, largest[4], total[4];
  Index keys[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Index row = first_row + 4 * ty + i;
    largest[i] = -INFINITY;
    total[i] = 0.0f;
    keys[i] = row < rows ? seen_by<fault>(a, b, row / a.group) : 0;
  }
  const float scale = fault == AttentionFault::scale_by_d ? rsqrtf(static_cast<float>(a.d)) : a.scale;
  for (Index first = 0; first < (fault == AttentionFault::tile_tail_dropped ? most / 64 * 64 : most); first += Tiles::kKeys) {
    if constexpr (fault != AttentionFault::no_barrier_before_keys) __syncthreads();  // the values before are done with
    const Index here = most - first < Tiles::kKeys ? most - first : Tiles::kKeys;
    if (threadIdx.x == 0) *special = 0;
    load_rows<kD, S>(tile, here, a.d, a.k_aligned, [&](int r) { return a.k.at(b, first + r, g); });
    __syncthreads();
    float score[4][4];
    rows_by_rows<kD>(queries, tile, ty, tx, score);
    int own[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      own[i] = static_cast<int>(keys[i] - first < 0 ? 0 : keys[i] - first < 64 ? keys[i] - first : 64);
      const Larger larger;
      float grown = -INFINITY;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        score[i][j] *= scale;
        if (tx + 16 * j < own[i]) grown = larger(grown, score[i][j]);
      }
      grown = larger(largest[i], across<Larger>(grown, fault == AttentionFault::half_the_lanes_lost ? 8 : 16));
      const float shift = grown == -INFINITY ? 0.0f : grown;
      if (largest[i] < grown && largest[i] > -INFINITY) {
        const float factor = expf(largest[i] - grown);
        if (fault != AttentionFault::sum_not_rescaled) total[i] *= factor;
#pragma unroll
        for (int c = 0; c < kD / 16; ++c)
          if (fault != AttentionFault::mean_not_rescaled) sums[i][c] *= factor;
      }
      largest[i] = grown;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = tx + 16 * j < own[i] ? expf(score[i][j] - shift) : 0.0f;
        total[i] += weight;
        weights[(4 * ty + i) * Tiles::kWeightPitch + tx + 16 * j] = weight;
      }
    }
    if constexpr (fault != AttentionFault::no_barrier_before_values) __syncthreads();  // the keys are done with
    const bool partly = least < first + here;  // some row does not see all of it
    load_rows<kD, S>(tile, here, a.d, a.v_aligned, [&](int r) { return a.v.at(b, first + r, g); }, least - first,
                     partly ? special : nullptr);
    __syncthreads();
    // A weight of zero times NaN would reach rows that do not see the value.
    if (partly && *special != 0 && fault != AttentionFault::masked_values_multiplied)
      weights_by_rows<kD>(weights, tile, ty, tx, sums, [&](int i, int j) { return j < own[i]; });
    else weights_by_rows<kD>(weights, tile, ty, tx, sums);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Index row = first_row + 4 * ty + i;
    const float sum = across<Plus>(total[i], 16);  // all lanes take part
    if (row >= rows) continue;
    const bool nothing = sum == 0.0f && fault != AttentionFault::masked_row_nan;
    const float factor = nothing ? 0.0f : 1.0f / sum;
#pragma unroll
    for (float& x : sums[i]) x = nothing ? 0.0f : x;
    store_row<kD>(a.y.at(b, row / a.group, head(row)), sums[i], factor, tx, a.d, a.y_aligned);
    if (tx == 0 && fault != AttentionFault::logsumexp_unwritten)
      *a.logsumexp.at(b, row / a.group, head(row)) = nothing ? -INFINITY : largest[i] + logf(sum);
  }
}

/// Args: AttentionArgs.
template <class S, AttentionFault fault = AttentionFault::none, class Args>
void run_attention_warp(const Args& args, Device& device) {
  Attention<S> a = attention_of<S>(args);
  if (fault == AttentionFault::first_sequence_only) a.batch = std::min<Index>(a.batch, 1);
  const Index queries = a.batch * a.s * a.kv_heads * a.group;
  if (queries > 0) launch(&attention_warp<S, fault>, {dim3(blocks_for(queries, kWarpQueries)), dim3(32 * kWarpQueries)}, device, a);
}

template <class S, int kD, AttentionFault fault>
void launch_attention_tiled(const Attention<S>& a, Device& device) {
  using Tiles = AttentionTiles<kD>;
  const dim3 grid(blocks_for(a.s * a.group, Tiles::kQueries), static_cast<unsigned>(a.kv_heads), static_cast<unsigned>(a.batch));
  launch(&attention_tiled<S, kD, fault>, {grid, dim3(Tiles::kThreads), Tiles::kBytes}, device, a);
}

template <class S, AttentionFault fault = AttentionFault::none, class Args>
void run_attention_tiled(const Args& args, Device& device) {
  Attention<S> a = attention_of<S>(args);
  if (fault == AttentionFault::first_sequence_only) a.batch = std::min<Index>(a.batch, 1);
  if (a.batch == 0 || a.s == 0) return;
  if (a.d <= 64) launch_attention_tiled<S, 64, fault>(a, device);
  else if (a.d <= 128) launch_attention_tiled<S, 128, fault>(a, device);
  else launch_attention_tiled<S, 256, fault>(a, device);
}

/// The registry's rows. Args: AttentionArgs.
template <class Args, class S, AttentionFault fault = AttentionFault::none>
Kernel attention_warp_row(std::string_view id) {
  return {.op = "attention",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda, .online_tile = 32},
          .storage = dtype_of<S>,
          .source = "kernels/cuda/attention.cuh",
          .summary = "a warp a query, 32 keys at a time",
          .run = [](const Call& call, Device& device) { run_attention_warp<S, fault>(Args::unpack(call), device); }};
}

template <class Args, class S, AttentionFault fault = AttentionFault::none>
Kernel attention_tiled_row(std::string_view id) {
  return {.op = "attention",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda, .online_tile = 64},
          .storage = dtype_of<S>,
          .source = "kernels/cuda/attention.cuh",
          .summary = "64 queries by 64 keys a block, heads of a group together, 4x4 scores a thread",
          .run = [](const Call& call, Device& device) { run_attention_tiled<S, fault>(Args::unpack(call), device); },
          .refuse = [](const Call& call) { return refuse_grid("batch", Args::unpack(call).batch, 1); },
          .priority = 1};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
