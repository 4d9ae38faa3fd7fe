// Gradients of attention from the saved logsumexp: one kernel by queries, one by keys, no atomics.
#pragma once

#include "kernels/cuda/attention.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// dq, dk, dv of y = attention(q, k, v) for upstream dy, with p = exp(scale q · k - logsumexp) and ds = p (dy · v - dy · y). Shapes
/// as of Attention; `along` (batch,heads,s) dense: scratch for dy · y. Gradients are overwritten and share no memory with the
/// inputs. Offsets take 64 bits. Sums run in an order that depends on the shape alone.
template <class S>
struct AttentionBackward {
  Attention<S> forward;  ///< y: read only
  HeadRows<const S> dy;
  HeadRows<S> dq, dk, dv;
  float* along;
  bool dy_aligned, dq_aligned, dk_aligned, dv_aligned;
};

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class AttentionBackwardFault {
  none,
  along_dropped,
  mask_off_by_one,
  lengths_ignored,
  first_head_of_group,
  heads_by_modulo,
  key_scale_missing,
  query_scale_missing,
  values_from_ds,
  no_barrier_before_reuse,
  tile_tail_dropped,
  masked_pairs_multiplied,
  masked_row_counted,
  last_queries_dropped,
  first_sequence_only,
};

/// Keys that sequence b has.
template <AttentionBackwardFault fault, class S>
__device__ Index keys_of(const Attention<S>& a, Index b) {
  return fault == AttentionBackwardFault::lengths_ignored ? a.t : a.lengths[b];
}

/// Head of row `row` (query row / group) of a key-value head.
template <AttentionBackwardFault fault, class S>
__device__ Index head_of(const Attention<S>& a, Index g, Index row) {
  return fault == AttentionBackwardFault::heads_by_modulo ? row % a.group * a.kv_heads + g : g * a.group + row % a.group;
}

/// Keys that query i of a sequence sees; none where its logsumexp is -inf.
template <AttentionBackwardFault fault, class S>
__device__ Index pairs_of(const Attention<S>& a, Index b, Index i, float logsumexp) {
  if (logsumexp == -INFINITY && fault != AttentionBackwardFault::masked_row_counted) return 0;
  return keys_seen(a.causal, keys_of<fault>(a, b), a.starts[b], fault == AttentionBackwardFault::mask_off_by_one ? i + 1 : i);
}

/// First row that may see key j.
template <AttentionBackwardFault fault, class S>
__device__ Index first_row_of_keys(const Attention<S>& a, Index b, Index j) {
  const Index position = a.causal ? j - a.starts[b] - (fault == AttentionBackwardFault::mask_off_by_one ? 1 : 0) : 0;
  return position <= 0 ? 0 : position * a.group;
}

/// What is known of a row beside its elements.
struct QueryRow {
  float logsumexp, along;  ///< along: dy · y
  Index keys;              ///< that it sees
};
/// Of row `row` of a key-value head; those from `rows` on see nothing.
template <AttentionBackwardFault fault, class S>
__device__ QueryRow query_row(const AttentionBackward<S>& p, Index b, Index g, Index row, Index rows) {
  if (row >= rows) return {-INFINITY, 0.0f, 0};
  const Attention<S>& a = p.forward;
  const Index h = head_of<fault>(a, g, row), i = row / a.group;
  const float logsumexp = *a.logsumexp.at(b, i, h);
  return {logsumexp, fault == AttentionBackwardFault::along_dropped ? 0.0f : p.along[(b * a.kv_heads * a.group + h) * a.s + i],
          pairs_of<fault>(a, b, i, logsumexp)};
}

/// along[b,h,i] = dy · y, a warp a row.
template <class S>
__global__ void __launch_bounds__(256) attention_along(AttentionBackward<S> p) {
  const Attention<S>& a = p.forward;
  const Index heads = a.kv_heads * a.group, number = Index{blockIdx.x} * 8 + static_cast<int>(threadIdx.x) / 32;
  if (number >= a.batch * heads * a.s) return;  // whole warps
  const Index i = number % a.s, h = number / a.s % heads, b = number / a.s / heads;
  const S* const y = a.y.at(b, i, h);
  const S* const dy = p.dy.at(b, i, h);
  float sum = 0.0f;
  for (Index c = 4 * (static_cast<int>(threadIdx.x) % 32); c < a.d; c += 128) {
    const float4 u = load4(y, c, a.d, a.y_aligned), v = load4(dy, c, a.d, p.dy_aligned);
    sum += u.x * v.x + u.y * v.y + (u.z * v.z + u.w * v.w);
  }
  sum = across<Plus>(sum, 32);
  if (threadIdx.x % 32 == 0) p.along[number] = sum;
}

/// dq of 64 rows of one key-value head (rows as in attention_tiled): values, then keys of 64 places pass through one buffer.
template <class S, int kD, AttentionBackwardFault fault>
__global__ void __launch_bounds__(256) attention_backward_queries(AttentionBackward<S> p) {
  using Tiles = AttentionTiles<kD>;
  const Attention<S>& a = p.forward;
  float* const queries = dynamic_shared<float>();
  float* const upstream = queries + 64 * Tiles::kPitch;
  float* const tile = upstream + 64 * Tiles::kPitch;
  float* const weights = tile + 64 * Tiles::kPitch;
  int* const special = reinterpret_cast<int*>(weights + 64 * Tiles::kWeightPitch);
  const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
  const Index first_row = (Index{gridDim.x} - 1 - blockIdx.x) * 64, rows = a.s * a.group;
  const Index b = blockIdx.z, g = blockIdx.y;
  const auto head = [&](Index row) { return head_of<fault>(a, g, row); };
  const Index count = rows - first_row < 64 ? rows - first_row : 64;
  load_rows<kD, S>(queries, count, a.d, a.q_aligned, [&](int r) { return a.q.at(b, (first_row + r) / a.group, head(first_row + r)); });
  load_rows<kD, S>(upstream, count, a.d, p.dy_aligned, [&](int r) { return p.dy.at(b, (first_row + r) / a.group, head(first_row + r)); });
  float sums[4][kD / 16] = {}, logsumexp[4], along[4];
  Index keys[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const QueryRow row = query_row<fault>(p, b, g, first_row + 4 * ty + i, rows);
    logsumexp[i] = row.logsumexp, along[i] = row.along, keys[i] = row.keys;
  }
  // Of the positions alone: rows that see nothing for another reason make a tile partly seen below.
  const Index most = pairs_of<fault>(a, b, (first_row + count - 1) / a.group, 0.0f);
  for (Index first = 0; first < (fault == AttentionBackwardFault::tile_tail_dropped ? most / 64 * 64 : most); first += 64) {
    const Index here = most - first < 64 ? most - first : 64;
    if constexpr (fault != AttentionBackwardFault::no_barrier_before_reuse) __syncthreads();
    if (threadIdx.x == 0) *special = 0;
    load_rows<kD, S>(tile, here, a.d, a.v_aligned, [&](int r) { return a.v.at(b, first + r, g); });
    __syncthreads();
    float dp[4][4], score[4][4];
    rows_by_rows<kD>(upstream, tile, ty, tx, dp);
    __syncthreads();
    load_rows<kD, S>(tile, here, a.d, a.k_aligned, [&](int r) { return a.k.at(b, first + r, g); }, 0, special);
    __syncthreads();
    rows_by_rows<kD>(queries, tile, ty, tx, score);
    int own[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      own[i] = static_cast<int>(keys[i] - first < 0 ? 0 : keys[i] - first < 64 ? keys[i] - first : 64);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = expf(score[i][j] * a.scale - logsumexp[i]);
        weights[(4 * ty + i) * Tiles::kWeightPitch + tx + 16 * j] = tx + 16 * j < own[i] ? weight * (dp[i][j] - along[i]) : 0.0f;
      }
    }
    __syncthreads();
    // Zero times NaN would reach rows that do not see the key.
    if (*special != 0 && fault != AttentionBackwardFault::masked_pairs_multiplied)
      weights_by_rows<kD>(weights, tile, ty, tx, sums, [&](int i, int j) { return j < own[i]; });
    else weights_by_rows<kD>(weights, tile, ty, tx, sums);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Index row = first_row + 4 * ty + i;
    if (row < rows)
      store_row<kD>(p.dq.at(b, row / a.group, head(row)), sums[i], fault == AttentionBackwardFault::query_scale_missing ? 1.0f : a.scale, tx, a.d,
                    p.dq_aligned);
  }
}

/// dk and dv of 64 keys of one key-value head: all rows that may see them, 64 at a time, queries and upstream gradients by turns
/// in one buffer.
template <class S, int kD, AttentionBackwardFault fault>
__global__ void __launch_bounds__(256) attention_backward_keys(AttentionBackward<S> p) {
  using Tiles = AttentionTiles<kD>;
  const Attention<S>& a = p.forward;
  float* const keys = dynamic_shared<float>();
  float* const values = keys + 64 * Tiles::kPitch;
  float* const tile = values + 64 * Tiles::kPitch;
  float* const weights = tile + 64 * Tiles::kPitch;
  int* const special = reinterpret_cast<int*>(weights + 64 * Tiles::kWeightPitch);
  ASSAY_SHARED(float, logsumexp, [64]);
  ASSAY_SHARED(float, along, [64]);
  ASSAY_SHARED(int, seen, [64]);  // of these 64 keys
  const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
  const Index first_key = Index{blockIdx.x} * 64, b = blockIdx.z, g = blockIdx.y;
  const Index count = a.t - first_key < 64 ? a.t - first_key : 64;
  const Index rows = fault == AttentionBackwardFault::last_queries_dropped ? a.s * a.group / 64 * 64 : a.s * a.group;
  const auto head = [&](Index row) { return head_of<fault>(a, g, row); };
  load_rows<kD, S>(keys, count, a.d, a.k_aligned, [&](int r) { return a.k.at(b, first_key + r, g); });
  load_rows<kD, S>(values, count, a.d, a.v_aligned, [&](int r) { return a.v.at(b, first_key + r, g); });
  float of_keys[4][kD / 16] = {}, of_values[4][kD / 16] = {};
  const Index end = first_key < keys_of<fault>(a, b) ? rows : 0;
  for (Index first = first_row_of_keys<fault>(a, b, first_key) / 64 * 64; first < end; first += 64) {
    const Index here = end - first < 64 ? end - first : 64;
    const auto load_tile = [&](const HeadRows<const S>& from_rows, bool aligned) {
      load_rows<kD, S>(tile, here, a.d, aligned, [&](int r) { return from_rows.at(b, (first + r) / a.group, head(first + r)); }, 0, special);
    };
    if constexpr (fault != AttentionBackwardFault::no_barrier_before_reuse) __syncthreads();
    if (threadIdx.x == 0) *special = 0;
    if (threadIdx.x < 64) {
      const int r = static_cast<int>(threadIdx.x);
      const QueryRow row = query_row<fault>(p, b, g, first + r, end);
      logsumexp[r] = row.logsumexp;
      along[r] = row.along;
      const bool left_out = fault == AttentionBackwardFault::first_head_of_group && (first + r) % a.group != 0;
      const Index sees = left_out ? 0 : row.keys - first_key;
      seen[r] = static_cast<int>(sees < 0 ? 0 : sees < 64 ? sees : 64);
    }
    __syncthreads();
    load_tile(a.q, a.q_aligned);
    __syncthreads();
    float weight[4][4], dp[4][4];  // of key 4 ty + i and query tx + 16 j
    rows_by_rows<kD>(keys, tile, ty, tx, weight);
    const auto visible = [&](int i, int r) { return 4 * ty + i < seen[r]; };
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        weight[i][j] = visible(i, tx + 16 * j) ? expf(weight[i][j] * a.scale - logsumexp[tx + 16 * j]) : 0.0f;
        weights[(4 * ty + i) * Tiles::kWeightPitch + tx + 16 * j] = weight[i][j];
      }
    __syncthreads();  // the queries are done with
    load_tile(p.dy, p.dy_aligned);
    __syncthreads();
    rows_by_rows<kD>(values, tile, ty, tx, dp);
    const auto ds_of = [&](int i, int j) { return visible(i, tx + 16 * j) ? weight[i][j] * (dp[i][j] - along[tx + 16 * j]) : 0.0f; };
    // Zero times NaN would pass between a key and a query that does not see it.
    const bool guarded = fault != AttentionBackwardFault::masked_pairs_multiplied;
    if constexpr (fault != AttentionBackwardFault::values_from_ds) {
      if (guarded && *special != 0) weights_by_rows<kD>(weights, tile, ty, tx, of_values, visible);
      else weights_by_rows<kD>(weights, tile, ty, tx, of_values);
    }
    __syncthreads();  // weights and upstream gradients are done with
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) weights[(4 * ty + i) * Tiles::kWeightPitch + tx + 16 * j] = ds_of(i, j);
    if constexpr (fault == AttentionBackwardFault::values_from_ds) {
      __syncthreads();
      weights_by_rows<kD>(weights, tile, ty, tx, of_values);
      __syncthreads();
    }
    load_tile(a.q, a.q_aligned);
    __syncthreads();
    if (guarded && *special != 0) weights_by_rows<kD>(weights, tile, ty, tx, of_keys, visible);
    else weights_by_rows<kD>(weights, tile, ty, tx, of_keys);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Index j = first_key + 4 * ty + i;
    if (j >= a.t) continue;
    store_row<kD>(p.dk.at(b, j, g), of_keys[i], fault == AttentionBackwardFault::key_scale_missing ? 1.0f : a.scale, tx, a.d, p.dk_aligned);
    store_row<kD>(p.dv.at(b, j, g), of_values[i], 1.0f, tx, a.d, p.dv_aligned);
  }
}

template <class S, int kD, AttentionBackwardFault fault>
void launch_attention_backward(const AttentionBackward<S>& p, Device& device) {
  const Attention<S>& a = p.forward;
  const auto heads = static_cast<unsigned>(a.kv_heads), batch = static_cast<unsigned>(a.batch);
  constexpr std::size_t kBytes = sizeof(float) * (3 * 64 * AttentionTiles<kD>::kPitch + 64 * AttentionTiles<kD>::kWeightPitch + 4);
  if (a.s > 0)
    launch(&attention_backward_queries<S, kD, fault>, {dim3(blocks_for(a.s * a.group, 64), heads, batch), dim3(256), kBytes}, device, p);
  if (a.t > 0)
    launch(&attention_backward_keys<S, kD, fault>, {dim3(blocks_for(a.t, 64), heads, batch), dim3(256), kBytes}, device, p);
}

/// passes(AttentionBackward), with the sums dy · y in its scratch. Args: AttentionBackwardArgs.
template <class S, AttentionBackwardFault fault, class Args, class Passes>
void with_row_sums(const Args& args, Device& device, Passes passes) {
  const auto dy = head_rows<const S>(args.dy);
  const auto dq = head_rows<S>(args.dq), dk = head_rows<S>(args.dk), dv = head_rows<S>(args.dv);
  AttentionBackward<S> p{attention_of<S>(args), dy, dq, dk, dv, nullptr, heads_aligned(dy), heads_aligned(dq), heads_aligned(dk), heads_aligned(dv)};
  if (fault == AttentionBackwardFault::first_sequence_only) p.forward.batch = std::min<Index>(p.forward.batch, 1);
  if (p.forward.batch == 0) return;
  const Index rows = args.batch * args.heads * args.s;
  const Buffer along = device.allocate(static_cast<std::size_t>(rows) * sizeof(float));
  p.along = static_cast<float*>(along.address());
  if (rows > 0) launch(&attention_along<S>, {dim3(blocks_for(rows, 8)), dim3(256)}, device, p);
  passes(p);
}

/// Args: AttentionBackwardArgs.
template <class S, AttentionBackwardFault fault = AttentionBackwardFault::none, class Args>
void run_attention_backward(const Args& args, Device& device) {
  with_row_sums<S, fault>(args, device, [&](const AttentionBackward<S>& p) {
    if (args.d <= 64) launch_attention_backward<S, 64, fault>(p, device);
    else if (args.d <= 128) launch_attention_backward<S, 128, fault>(p, device);
    else launch_attention_backward<S, 256, fault>(p, device);
  });
}

/// The registry's row. Args: AttentionBackwardArgs.
template <class Args, class S, AttentionBackwardFault fault = AttentionBackwardFault::none>
Kernel attention_backward_row(std::string_view id) {
  return {.op = "attention_backward",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda},
          .storage = dtype_of<S>,
          .source = "kernels/cuda/attention_backward.cuh",
          .summary = "64 queries by 64 keys a block, one pass for dq and one for dk and dv, 4x4 pairs a thread",
          .run = [](const Call& call, Device& device) { run_attention_backward<S, fault>(Args::unpack(call), device); },
          .refuse = [](const Call& call) { return refuse_grid("batch", Args::unpack(call).batch, 1); },
          .priority = 1};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
