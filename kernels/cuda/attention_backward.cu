// Gradients of attention from the saved logsumexp: one kernel over queries, one over keys, no atomics. Three versions:
// by warps (one per row of dq or per key), by tiles of 64 queries and 64 keys, and on tensor cores, where scores stay
// in registers; and the kernels of attention_backward_wgmma.cuh and attention_backward_wgmma_tf32.cuh.
#include "ops/attention_backward.hpp"

#include "kernels/cuda/attention_backward_wgmma.cuh"
#include "kernels/cuda/attention_backward_wgmma_tf32.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_backward {
namespace {

using namespace attention_backward;
using ops::AttentionBackwardArgs;

/// along[b,h,i] = dy · y, one warp per row; and shift, if there is one.
template <class S>
__global__ void __launch_bounds__(256) attention_along(AttentionBackward<S> p) {
  const Attention<S>& a = p.forward;
  const Index heads = a.kv_heads * a.group, number = Index{blockIdx.x} * 8 + static_cast<int>(threadIdx.x) / 32;
  if (number >= a.batch * heads * a.s) return;  // whole warps
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Index i = number % a.s, h = number / a.s % heads, b = number / a.s / heads, head = (b * heads + h) * p.pitch;
  const S* const y = a.y.at(b, i, h);
  const S* const dy = p.dy.at(b, i, h);
  float sum = 0.0f;
  for (Index c = 4 * lane; c < a.d; c += 128) {
    const float4 u = load4(y, c, a.d, a.y_aligned), v = load4(dy, c, a.d, p.dy_aligned);
    sum += u.x * v.x + u.y * v.y + (u.z * v.z + u.w * v.w);
  }
  sum = across<Plus>(sum, 32);
  if (lane == 0) {
    p.along[head + i] = sum;
    const float logsumexp = *a.logsumexp.at(b, i, h);
    if (p.shift != nullptr) p.shift[head + i] = logsumexp == -INFINITY ? INFINITY : logsumexp * kLog2E;
  }
  if (i == a.s - 1)
    for (Index past = a.s + lane; past < p.pitch; past += 32)
      p.along[head + past] = 0.0f, p.shift[head + past] = INFINITY;
}

/// Calls passes(AttentionBackward) with the sums dy · y in its scratch. If `tile` is more than 1, the rows of a head are
/// padded to a multiple of it, and `shift` is given, too.
template <class S, class Passes>
void with_row_sums(const AttentionBackwardArgs& args, Device& device, Index tile, Passes passes) {
  const auto dy = head_rows<const S>(args.dy);
  const auto dq = head_rows<S>(args.dq), dk = head_rows<S>(args.dk), dv = head_rows<S>(args.dv);
  AttentionBackward<S> p{attention_of<S>(args),
                         dy,
                         dq,
                         dk,
                         dv,
                         heads_aligned(dy),
                         heads_aligned(dq),
                         heads_aligned(dk),
                         heads_aligned(dv),
                         (args.s + tile - 1) / tile * tile};
  if (p.forward.batch == 0) return;
  const Index rows = args.batch * args.heads * args.s, padded = args.batch * args.heads * p.pitch;
  const Buffer scratch = device.allocate(static_cast<std::size_t>(tile > 1 ? 2 * padded : padded) * sizeof(float));
  p.along = static_cast<float*>(scratch.address());
  if (tile > 1) p.shift = p.along + padded;
  if (rows > 0) launch(&attention_along<S>, {dim3(blocks_for(rows, 8)), dim3(256)}, device, p);
  passes(p);
}

/// dq with one warp per row.
template <class S>
__global__ void __launch_bounds__(32 * kWarpQueries) attention_backward_warp_queries(AttentionBackward<S> p) {
  const Index rows = p.forward.s * p.forward.group,
              number = Index{blockIdx.x} * kWarpQueries + static_cast<int>(threadIdx.x) / 32;
  const Index at = number / rows;
  if (at < p.forward.batch * p.forward.kv_heads)
    query_gradient(p, at / p.forward.kv_heads, at % p.forward.kv_heads, number % rows);
}
/// dk and dv with one warp per key.
template <class S>
__global__ void __launch_bounds__(32 * kWarpQueries) attention_backward_warp_keys(AttentionBackward<S> p) {
  const Index t = p.forward.t, number = Index{blockIdx.x} * kWarpQueries + static_cast<int>(threadIdx.x) / 32,
              at = number / t;
  if (at < p.forward.batch * p.forward.kv_heads)
    key_gradients(p, at / p.forward.kv_heads, at % p.forward.kv_heads, number % t, 0, p.forward.d);
}

template <class S>
void run_warp(const AttentionBackwardArgs& args, Device& device) {
  with_row_sums<S>(args, device, 1, [&](const AttentionBackward<S>& p) {
    const Index heads = p.forward.batch * args.kv_heads, queries = heads * args.s * p.forward.group,
                keys = heads * args.t;
    const dim3 threads(32 * kWarpQueries);
    if (queries > 0)
      launch(&attention_backward_warp_queries<S>, {dim3(blocks_for(queries, kWarpQueries)), threads}, device, p);
    if (keys > 0) launch(&attention_backward_warp_keys<S>, {dim3(blocks_for(keys, kWarpQueries)), threads}, device, p);
  });
}

/// dq of 64 rows of one key-value head (rows as in attention_tiled): values, then keys of 64 places, pass through one
/// buffer.
template <class S, int kD>
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
  const auto head = [&](Index row) { return head_of(a, g, row); };
  const Index count = rows - first_row < 64 ? rows - first_row : 64;
  load_rows<kD, S>(queries, count, a.d, a.q_aligned,
                   [&](int r) { return a.q.at(b, (first_row + r) / a.group, head(first_row + r)); });
  load_rows<kD, S>(upstream, count, a.d, p.dy_aligned,
                   [&](int r) { return p.dy.at(b, (first_row + r) / a.group, head(first_row + r)); });
  float sums[4][kD / 16] = {}, logsumexp[4], along[4];
  Index keys[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const QueryRow row = query_row(p, b, g, first_row + 4 * ty + i, rows);
    logsumexp[i] = row.logsumexp, along[i] = row.along, keys[i] = row.keys;
  }
  // Depends on positions alone: rows that see no key for another reason make a tile partly visible below.
  const Index most = pairs_of(a, b, (first_row + count - 1) / a.group, 0.0f);
  for (Index first = 0; first < most; first += 64) {
    const Index here = most - first < 64 ? most - first : 64;
    __syncthreads();  // all threads have read the previous keys
    if (threadIdx.x == 0) *special = 0;
    load_rows<kD, S>(tile, here, a.d, a.v_aligned, [&](int r) { return a.v.at(b, first + r, g); });
    __syncthreads();
    float dp[4][4], score[4][4];
    rows_by_rows<kD>(upstream, tile, ty, tx, dp);
    __syncthreads();
    load_rows<kD, S>(
        tile, here, a.d, a.k_aligned, [&](int r) { return a.k.at(b, first + r, g); }, 0, special);
    __syncthreads();
    rows_by_rows<kD>(queries, tile, ty, tx, score);
    int own[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      own[i] = static_cast<int>(keys[i] - first < 0 ? 0 : keys[i] - first < 64 ? keys[i] - first : 64);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = expf(score[i][j] * a.scale - logsumexp[i]);
        weights[(4 * ty + i) * Tiles::kWeightPitch + tx + 16 * j] =
            tx + 16 * j < own[i] ? weight * (dp[i][j] - along[i]) : 0.0f;
      }
    }
    __syncthreads();
    // Zero times NaN would reach rows that do not see the key.
    if (*special != 0) weights_by_rows<kD>(weights, tile, ty, tx, sums, [&](int i, int j) { return j < own[i]; });
    else weights_by_rows<kD>(weights, tile, ty, tx, sums);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Index row = first_row + 4 * ty + i;
    if (row < rows) store_row<kD>(p.dq.at(b, row / a.group, head(row)), sums[i], a.scale, tx, a.d, p.dq_aligned);
  }
}

/// dk and dv of 64 keys of one key-value head over all rows that may see them, 64 at a time: queries and upstream
/// gradients alternate in one buffer.
template <class S, int kD>
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
  ASSAY_SHARED(int, seen, [64]);  // number of these 64 keys that each row sees
  const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
  const Index first_key = Index{blockIdx.x} * 64, b = blockIdx.z, g = blockIdx.y;
  const Index count = a.t - first_key < 64 ? a.t - first_key : 64, rows = a.s * a.group;
  const auto head = [&](Index row) { return head_of(a, g, row); };
  load_rows<kD, S>(keys, count, a.d, a.k_aligned, [&](int r) { return a.k.at(b, first_key + r, g); });
  load_rows<kD, S>(values, count, a.d, a.v_aligned, [&](int r) { return a.v.at(b, first_key + r, g); });
  float of_keys[4][kD / 16] = {}, of_values[4][kD / 16] = {};
  const Index end = first_key < a.lengths[b] ? rows : 0;
  for (Index first = first_row_of_keys(a, b, first_key) / 64 * 64; first < end; first += 64) {
    const Index here = end - first < 64 ? end - first : 64;
    const auto load_tile = [&](const HeadRows<const S>& from_rows, bool aligned) {
      load_rows<kD, S>(
          tile, here, a.d, aligned, [&](int r) { return from_rows.at(b, (first + r) / a.group, head(first + r)); }, 0,
          special);
    };
    __syncthreads();  // all threads have read the previous rows
    if (threadIdx.x == 0) *special = 0;
    if (threadIdx.x < 64) {
      const int r = static_cast<int>(threadIdx.x);
      const QueryRow row = query_row(p, b, g, first + r, end);
      logsumexp[r] = row.logsumexp;
      along[r] = row.along;
      const Index sees = row.keys - first_key;
      seen[r] = static_cast<int>(sees < 0 ? 0 : sees < 64 ? sees : 64);
    }
    __syncthreads();
    load_tile(a.q, a.q_aligned);
    __syncthreads();
    float weight[4][4], dp[4][4];  // for key 4 ty + i and query tx + 16 j
    rows_by_rows<kD>(keys, tile, ty, tx, weight);
    const auto visible = [&](int i, int r) { return 4 * ty + i < seen[r]; };
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        weight[i][j] = visible(i, tx + 16 * j) ? expf(weight[i][j] * a.scale - logsumexp[tx + 16 * j]) : 0.0f;
        weights[(4 * ty + i) * Tiles::kWeightPitch + tx + 16 * j] = weight[i][j];
      }
    __syncthreads();  // all threads have read the queries
    load_tile(p.dy, p.dy_aligned);
    __syncthreads();
    rows_by_rows<kD>(values, tile, ty, tx, dp);
    const auto ds_of = [&](int i, int j) {
      return visible(i, tx + 16 * j) ? weight[i][j] * (dp[i][j] - along[tx + 16 * j]) : 0.0f;
    };
    // Zero times NaN would pass between a key and a query that does not see it.
    if (*special != 0) weights_by_rows<kD>(weights, tile, ty, tx, of_values, visible);
    else weights_by_rows<kD>(weights, tile, ty, tx, of_values);
    __syncthreads();  // all threads have read weights and upstream gradients
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) weights[(4 * ty + i) * Tiles::kWeightPitch + tx + 16 * j] = ds_of(i, j);
    load_tile(a.q, a.q_aligned);
    __syncthreads();
    if (*special != 0) weights_by_rows<kD>(weights, tile, ty, tx, of_keys, visible);
    else weights_by_rows<kD>(weights, tile, ty, tx, of_keys);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Index j = first_key + 4 * ty + i;
    if (j >= a.t) continue;
    store_row<kD>(p.dk.at(b, j, g), of_keys[i], a.scale, tx, a.d, p.dk_aligned);
    store_row<kD>(p.dv.at(b, j, g), of_values[i], 1.0f, tx, a.d, p.dv_aligned);
  }
}

template <class S, int kD>
void launch_tiled(const AttentionBackward<S>& p, Device& device) {
  const Attention<S>& a = p.forward;
  const auto heads = static_cast<unsigned>(a.kv_heads), batch = static_cast<unsigned>(a.batch);
  constexpr std::size_t kBytes =
      sizeof(float) * (3 * 64 * AttentionTiles<kD>::kPitch + 64 * AttentionTiles<kD>::kWeightPitch + 4);
  if (a.s > 0)
    launch(&attention_backward_queries<S, kD>, {dim3(blocks_for(a.s * a.group, 64), heads, batch), dim3(256), kBytes},
           device, p);
  if (a.t > 0)
    launch(&attention_backward_keys<S, kD>, {dim3(blocks_for(a.t, 64), heads, batch), dim3(256), kBytes}, device, p);
}

template <class S>
void run_tiled(const AttentionBackwardArgs& args, Device& device) {
  with_row_sums<S>(args, device, 1, [&](const AttentionBackward<S>& p) {
    if (args.d <= 64) launch_tiled<S, 64>(p, device);
    else if (args.d <= 128) launch_tiled<S, 128>(p, device);
    else launch_tiled<S, 256>(p, device);
  });
}

/// dq of kRows rows of one key-value head (rows as in attention_tiled); the pair of tiles of a stage holds keys and
/// values.
template <class S, int kD>
__global__ void __launch_bounds__(MmaPlan<S, kD, 2>::kThreads) attention_backward_mma_queries(AttentionBackward<S> p) {
  using Plan = MmaPlan<S, kD, 2>;
  constexpr int kTile = Plan::kTile, kPitch = Plan::kPitch;
  const Attention<S>& a = p.forward;
  const int rows = static_cast<int>(a.s * a.group), group = static_cast<int>(a.group), d = static_cast<int>(a.d);
  const int first_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * Plan::kRows,
            own_rows = 16 * (static_cast<int>(threadIdx.x) / 32);
  const int count = min(rows - first_row, Plan::kRows);
  const Index b = blockIdx.z, g = blockIdx.y;
  const auto head = [&](int row) { return head_of(a, g, row); };
  // Depends on positions alone: rows that see no key for another reason are left out below.
  const Index most = pairs_of(a, b, (first_row + count - 1) / group, 0.0f);
  const int tiles = static_cast<int>((most + kTile - 1) / kTile);
  const auto fetch = [&](int tile) { fetch_keys<Plan, kD>(a, b, g, tile, tiles, most); };
  S *const queries = dynamic_shared<S>(), *const upstream = queries + Plan::kRows * kPitch;
  fetch_rows<Plan, kD>(queries, Plan::kRows, count, d,
                       [&](int r) { return a.q.at(b, (first_row + r) / group, head(first_row + r)); });
  fetch_rows<Plan, kD>(upstream, Plan::kRows, count, d,
                       [&](int r) { return p.dy.at(b, (first_row + r) / group, head(first_row + r)); });
  fetch(0);

  Index seen[2];
  float sums[kD / 8][4] = {}, shift[2], along[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + own_rows + output_row(2 * half);
    const QueryRow own = query_row(p, b, g, row, rows);
    shift[half] = own.logsumexp * kLog2E;
    along[half] = own.along;
    seen[half] = own.keys;
  }
  const float scale = a.scale * kLog2E;
  const auto add_tile = [&](const S* keys, Index first) {
    const S* const values = keys + kTile * kPitch;
    const int here = static_cast<int>(min(most - first, Index{kTile}));
    float weights[kTile / 8][4], dp[kTile / 8][4];
    dot_rows(queries + own_rows * kPitch, keys, kPitch, here, d, weights);
    dot_rows(upstream + own_rows * kPitch, values, kPitch, here, d, dp);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int own = static_cast<int>(min(max(seen[e / 2] - first, Index{0}), Index{kTile}));
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n)
        weights[n][e] = 8 * n + output_column(e) < own
                            ? exp2f(weights[n][e] * scale - shift[e / 2]) * (dp[n][e] - along[e / 2])
                            : 0.0f;
    }
    add_weighted_rows(weights, keys, kPitch, here, d, sums);
  };
  for (int tile = 0; tile < tiles; ++tile) {
    if constexpr (Plan::kStages == 2) fetch(tile + 1);
    __pipeline_wait_prior(Plan::kStages - 1);
    __syncthreads();  // the tile has arrived for all threads
    if (first_row + own_rows < rows) add_tile(Plan::pair(tile), Index{tile} * kTile);
    __syncthreads();  // all threads have read the tile
    if constexpr (Plan::kStages == 1) fetch(tile + 1);
  }
  __pipeline_wait_prior(0);
  const std::uint64_t nonfinite_mask = nonfinite_rows(sums, {0.0f, 0.0f});
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = output_row(2 * half), row = first_row + own_rows + r;
    if (row < rows && !is_nonfinite_row(nonfinite_mask, r))
      store_outputs(p.dq.at(b, row / group, head(row)), sums, half, a.scale, a.d);
  }
  for (int r = 0; r < 16; ++r)
    if (const int row = first_row + own_rows + r; is_nonfinite_row(nonfinite_mask, r) && row < rows)
      query_gradient(p, b, g, row);
}

/// Columns of dk and dv per block of attention_backward_mma_keys: as many as fit into registers.
template <int kD>
constexpr int kMmaColumns = kD <= 128 ? kD : 128;

/// dk and dv of kRows keys of one key-value head, kMmaColumns columns a block. The pair of tiles of a stage holds
/// queries and upstream gradients, with logsumexp, the sum of dy y and the count of visible keys for each row.
template <class S, int kD>
__global__ void __launch_bounds__(MmaPlan<S, kD, 2, 3>::kThreads) attention_backward_mma_keys(AttentionBackward<S> p) {
  using Plan = MmaPlan<S, kD, 2, 3>;
  constexpr int kTile = Plan::kTile, kPitch = Plan::kPitch, kColumns = kMmaColumns<kD>;
  const Attention<S>& a = p.forward;
  const int rows = static_cast<int>(a.s * a.group), group = static_cast<int>(a.group), d = static_cast<int>(a.d);
  const int own_rows = 16 * (static_cast<int>(threadIdx.x) / 32);
  const int part = static_cast<int>(blockIdx.x) % (kD / kColumns) * kColumns, columns = min(d - part, kColumns);
  const Index first_key = Index{blockIdx.x / (kD / kColumns)} * Plan::kRows, b = blockIdx.z, g = blockIdx.y;
  const auto head = [&](int row) { return head_of(a, g, row); };
  const int from = static_cast<int>(min(first_row_of_keys(a, b, first_key), Index{rows})) / kTile * kTile;
  const int end = first_key < a.lengths[b] ? rows : 0;
  const auto fetch = [&](int first) {
    if (first < end) {
      const int stage = first / kTile, here = min(end - first, kTile);
      fetch_rows<Plan, kD>(Plan::pair(stage), kTile, here, d,
                           [&](int r) { return a.q.at(b, (first + r) / group, head(first + r)); });
      fetch_rows<Plan, kD>(Plan::pair(stage) + kTile * kPitch, kTile, here, d,
                           [&](int r) { return p.dy.at(b, (first + r) / group, head(first + r)); });
      if (const int r = static_cast<int>(threadIdx.x); r < kTile) {
        const QueryRow row = query_row(p, b, g, first + r, end);
        float* const scalars = Plan::scalars(stage);
        scalars[r] = row.logsumexp * kLog2E;
        scalars[kTile + r] = row.along;
        scalars[2 * kTile + r] = static_cast<float>(min(max(row.keys - first_key, Index{0}), Index{Plan::kRows}));
      }
    }
    __pipeline_commit();
  };
  S *const keys = dynamic_shared<S>(), *const values = keys + Plan::kRows * kPitch;
  const int count = static_cast<int>(min(a.t - first_key, Index{Plan::kRows}));
  fetch_rows<Plan, kD>(keys, Plan::kRows, count, d, [&](int r) { return a.k.at(b, first_key + r, g); });
  fetch_rows<Plan, kD>(values, Plan::kRows, count, d, [&](int r) { return a.v.at(b, first_key + r, g); });
  fetch(from);

  float of_keys[kColumns / 8][4] = {}, of_values[kColumns / 8][4] = {};
  const float scale = a.scale * kLog2E;
  const auto add_tile = [&](const S* queries, const float* scalars, int here) {
    const S* const upstream = queries + kTile * kPitch;
    float weights[kTile / 8][4], ds[kTile / 8][4];
    dot_rows(keys + own_rows * kPitch, queries, kPitch, here, d, weights);
    dot_rows(values + own_rows * kPitch, upstream, kPitch, here, d, ds);
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int r = 8 * n + output_column(e);
        const bool visible = own_rows + output_row(e) < static_cast<int>(scalars[2 * kTile + r]);
        weights[n][e] = visible ? exp2f(weights[n][e] * scale - scalars[r]) : 0.0f;
        ds[n][e] = visible ? weights[n][e] * (ds[n][e] - scalars[kTile + r]) : 0.0f;
      }
    add_weighted_rows(weights, upstream + part, kPitch, here, columns, of_values);
    add_weighted_rows(ds, queries + part, kPitch, here, columns, of_keys);
  };
  for (int first = from; first < end; first += kTile) {
    const int stage = first / kTile;
    if constexpr (Plan::kStages == 2) fetch(first + kTile);
    __pipeline_wait_prior(Plan::kStages - 1);
    __syncthreads();  // the tile has arrived for all threads
    if (first_key + own_rows < a.t) add_tile(Plan::pair(stage), Plan::scalars(stage), min(end - first, kTile));
    __syncthreads();  // all threads have read the tile
    if constexpr (Plan::kStages == 1) fetch(first + kTile);
  }
  __pipeline_wait_prior(0);
  const float none[2] = {0.0f, 0.0f};
  const std::uint64_t nonfinite_mask = nonfinite_rows(of_keys, none) | nonfinite_rows(of_values, none);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = output_row(2 * half);
    const Index j = first_key + own_rows + r;
    if (j >= a.t || is_nonfinite_row(nonfinite_mask, r)) continue;
    store_outputs(p.dk.at(b, j, g) + part, of_keys, half, a.scale, columns);
    store_outputs(p.dv.at(b, j, g) + part, of_values, half, 1.0f, columns);
  }
  for (int r = 0; r < 16; ++r)
    if (const Index j = first_key + own_rows + r; is_nonfinite_row(nonfinite_mask, r) && j < a.t)
      key_gradients(p, b, g, j, part, columns);
}

template <class S, int kD>
void launch_mma(const AttentionBackward<S>& p, Device& device) {
  const Attention<S>& a = p.forward;
  const auto heads = static_cast<unsigned>(a.kv_heads), batch = static_cast<unsigned>(a.batch);
  if (a.s > 0) {
    using Plan = MmaPlan<S, kD, 2>;
    launch(&attention_backward_mma_queries<S, kD>,
           {dim3(blocks_for(a.s * a.group, Plan::kRows), heads, batch), dim3(Plan::kThreads), Plan::kBytes}, device, p);
  }
  if (a.t > 0) {
    using Plan = MmaPlan<S, kD, 2, 3>;
    launch(
        &attention_backward_mma_keys<S, kD>,
        {dim3(blocks_for(a.t, Plan::kRows) * (kD / kMmaColumns<kD>), heads, batch), dim3(Plan::kThreads), Plan::kBytes},
        device, p);
  }
}

/// Throws Unavailable if the device has too little shared memory, or compute capability below 8.0.
template <class S>
void run_mma(const AttentionBackwardArgs& args, Device& device) {
  need_mma("attention_backward_mma", device);
  with_row_sums<S>(args, device, 1, [&](const AttentionBackward<S>& p) {
    if (args.d <= 64) launch_mma<S, 64>(p, device);
    else if (args.d <= 128) launch_mma<S, 128>(p, device);
    else launch_mma<S, 256>(p, device);
  });
}

std::optional<std::string> refuse(const AttentionBackwardArgs& args) { return refuse_grid("batch", args.batch, 1); }

template <class S>
std::optional<std::string> refuse_tensors(const AttentionBackwardArgs& args) {
  if constexpr (std::is_same_v<S, float>) {
    if (auto why = by_wgmma_tf32::refuse(attention_of<S>(args))) return why;
  }
  if (auto why = by_wgmma::refuse(attention_of<S>(args))) return why;
  return by_wgmma::refuse_heads("dy", head_rows<const S>(args.dy), args.d);
}

std::optional<std::string> refuse_by_boxes(const AttentionBackwardArgs& args) {
  if (auto why = refuse(args)) return why;
  if (auto why = hopper::refuse_device()) return why;
  switch (args.q.dtype()) {
    case DType::f16: return refuse_tensors<Half>(args);
    case DType::bf16: return refuse_tensors<BFloat16>(args);
    default: return refuse_tensors<float>(args);
  }
}

/// Throws Unavailable if refuse_tensors does or the device has not compute capability 9.0.
template <class S>
void run_wgmma(const AttentionBackwardArgs& args, Device& device) {
  hopper::need_hopper("attention_backward_wgmma", device);
  if (auto why = refuse_tensors<S>(args)) throw Unavailable("attention_backward_wgmma", *why);
  if constexpr (std::is_same_v<S, float>)
    with_row_sums<S>(args, device, by_wgmma_tf32::kKeys, [&](const AttentionBackward<S>& p) {
      if (args.d <= 64) backward_by_wgmma_tf32::launch_passes<64>(p, device);
      else backward_by_wgmma_tf32::launch_passes<128>(p, device);
    });
  else
    with_row_sums<S>(args, device, backward_by_wgmma::kTile, [&](const AttentionBackward<S>& p) {
      if (args.d <= 64) backward_by_wgmma::launch_passes<S, 64>(p, device);
      else backward_by_wgmma::launch_passes<S, 128>(p, device);
    });
}

template <class S>
KernelRegistration by_warps(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "a warp a query for dq, and a key for dk and dv, 32 pairs at a time",
                             .run = &run_typed<AttentionBackwardArgs, &run_warp<S>>});
}

template <class S>
KernelRegistration by_tiles(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::cuda},
       .storage = dtype_of<S>,
       .summary = "64 queries by 64 keys a block, one pass for dq and one for dk and dv, 4x4 pairs a thread",
       .run = &run_typed<AttentionBackwardArgs, &run_tiled<S>>,
       .refuse = &refuse_typed<AttentionBackwardArgs, &refuse>,
       .priority = 1});
}

template <class S>
KernelRegistration on_tensor_cores(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = mma_arithmetic<S>(),
       .storage = dtype_of<S>,
       .summary =
           sizeof(S) == 2
               ? "16-bit tensor cores (mma.sync m16n8k16), 16 rows a warp, one pass for dq and one for dk and dv"
               : "three products of TF32 for one (mma.sync m16n8k8), 16 rows a warp, one pass for dq and one for dk and dv",
       .run = &run_typed<AttentionBackwardArgs, &run_mma<S>>,
       .refuse = &refuse_typed<AttentionBackwardArgs, &refuse>,
       .priority = 2});
}

template <class S>
KernelRegistration by_wgmma_of(std::string_view id) {
  Arithmetic arithmetic = mma_arithmetic<S>();
  // A flushed weight is far below what f16 holds.
  arithmetic.flushes_subnormals = std::is_same_v<S, BFloat16>;
  return KernelRegistration(
      {.id = id,
       .arithmetic = arithmetic,
       .storage = dtype_of<S>,
       .summary =
           sizeof(S) == 2
               ? "16-bit tensor cores (wgmma), one pass for dq and one for dk and dv, a warp that copies and two "
                 "warpgroups of 64 queries or keys, weights and ds stay in registers"
               : "three products of TF32 for one (wgmma), a pass each for dq, dk and dv, transposed factors and "
                 "lower parts written before, a warp that copies and two warpgroups of 64 queries or keys",
       .run = &run_typed<AttentionBackwardArgs, &run_wgmma<S>>,
       .refuse = &refuse_typed<AttentionBackwardArgs, &refuse_by_boxes>,
       .priority = 3,
       .limits = &by_wgmma::heads_of_whole_boxes<5>()});
}

const KernelRegistration registrations[] = {
    by_warps<float>("attention_backward/" ASSAY_CUDA_NAME "/warp"),
    by_tiles<float>("attention_backward/" ASSAY_CUDA_NAME "/tiled"),
    by_tiles<Half>("attention_backward/" ASSAY_CUDA_NAME "/tiled_f16"),
    by_tiles<BFloat16>("attention_backward/" ASSAY_CUDA_NAME "/tiled_bf16"),
    on_tensor_cores<float>("attention_backward/" ASSAY_CUDA_NAME "/mma_tf32x3"),
    on_tensor_cores<Half>("attention_backward/" ASSAY_CUDA_NAME "/mma_f16"),
    on_tensor_cores<BFloat16>("attention_backward/" ASSAY_CUDA_NAME "/mma_bf16"),
    by_wgmma_of<Half>("attention_backward/" ASSAY_CUDA_NAME "/wgmma_f16"),
    by_wgmma_of<BFloat16>("attention_backward/" ASSAY_CUDA_NAME "/wgmma_bf16"),
    by_wgmma_of<float>("attention_backward/" ASSAY_CUDA_NAME "/wgmma_tf32x3")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_attention_backward
