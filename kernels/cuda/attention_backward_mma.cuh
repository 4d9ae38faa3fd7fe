// Gradients of attention on tensor cores: one kernel by queries, one by keys, whose pairs stay in the registers where they arise.
#pragma once

#include "kernels/cuda/attention_backward_warp.cuh"
#include "kernels/cuda/attention_mma.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// dq of kRows rows of one key-value head (rows as in attention_tiled); the pair of a stage is keys and values.
template <class S, int kD, AttentionBackwardFault fault>
__global__ void __launch_bounds__(MmaPlan<S, kD, 2>::kThreads) attention_backward_mma_queries(AttentionBackward<S> p) {
  using Plan = MmaPlan<S, kD, 2>;
  constexpr int kTile = Plan::kTile, kPitch = Plan::kPitch;
  const Attention<S>& a = p.forward;
  const int rows = static_cast<int>(a.s * a.group), group = static_cast<int>(a.group), d = static_cast<int>(a.d);
  const int first_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * Plan::kRows, own_rows = 16 * (static_cast<int>(threadIdx.x) / 32);
  const int count = min(rows - first_row, Plan::kRows);
  const Index b = blockIdx.z, g = blockIdx.y;
  const auto head = [&](int row) { return head_of<fault>(a, g, row); };
  // Of the positions alone: rows that see nothing for another reason are left out below.
  const Index most = pairs_of<fault>(a, b, (first_row + count - 1) / group, 0.0f);
  const int tiles = static_cast<int>(fault == AttentionBackwardFault::tile_tail_dropped ? most / kTile : (most + kTile - 1) / kTile);
  const auto fetch = [&](int tile) { fetch_keys<Plan, kD>(a, b, g, tile, tiles, most); };
  S *const queries = dynamic_shared<S>(), *const upstream = queries + Plan::kRows * kPitch;
  fetch_rows<Plan, kD>(queries, Plan::kRows, count, d, [&](int r) { return a.q.at(b, (first_row + r) / group, head(first_row + r)); });
  fetch_rows<Plan, kD>(upstream, Plan::kRows, count, d, [&](int r) { return p.dy.at(b, (first_row + r) / group, head(first_row + r)); });
  fetch(0);

  Index seen[2];
  float sums[kD / 8][4] = {}, shift[2], along[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + own_rows + output_row(2 * half);
    const QueryRow own = query_row<fault>(p, b, g, row, rows);
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
        weights[n][e] = 8 * n + output_column(e) < own ? exp2f(weights[n][e] * scale - shift[e / 2]) * (dp[n][e] - along[e / 2]) : 0.0f;
    }
    add_weighted_rows(weights, keys, kPitch, here, d, sums);
  };
  for (int tile = 0; tile < tiles; ++tile) {
    if constexpr (Plan::kStages == 2) fetch(tile + 1);
    __pipeline_wait_prior(Plan::kStages - 1);
    __syncthreads();  // the tile has come for all threads
    if (first_row + own_rows < rows) add_tile(Plan::pair(tile), Index{tile} * kTile);
    if constexpr (fault != AttentionBackwardFault::no_barrier_before_reuse) __syncthreads();  // the tile is done with
    if constexpr (Plan::kStages == 1) fetch(tile + 1);
  }
  __pipeline_wait_prior(0);
  const std::uint64_t spoilt = fault == AttentionBackwardFault::masked_pairs_multiplied ? 0 : spoilt_rows(sums, {0.0f, 0.0f});
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = output_row(2 * half), row = first_row + own_rows + r;
    if (row < rows && !is_spoilt(spoilt, r))
      store_outputs(p.dq.at(b, row / group, head(row)), sums, half, fault == AttentionBackwardFault::query_scale_missing ? 1.0f : a.scale, a.d);
  }
  for (int r = 0; r < 16; ++r)
    if (const int row = first_row + own_rows + r; is_spoilt(spoilt, r) && row < rows) query_gradient<fault>(p, b, g, row);
}

/// Columns of dk and dv that a block of attention_backward_mma_keys has: all that fit into registers.
template <int kD>
inline constexpr int kMmaColumns = kD <= 128 ? kD : 128;

/// dk and dv of kRows keys of one key-value head, kMmaColumns of them; the pair of a stage is queries and upstream gradients, with
/// logsumexp, the sum of dy y and the count of keys seen beside each row.
template <class S, int kD, AttentionBackwardFault fault>
__global__ void __launch_bounds__(MmaPlan<S, kD, 2, 3>::kThreads) attention_backward_mma_keys(AttentionBackward<S> p) {
  using Plan = MmaPlan<S, kD, 2, 3>;
  constexpr int kTile = Plan::kTile, kPitch = Plan::kPitch, kColumns = kMmaColumns<kD>;
  const Attention<S>& a = p.forward;
  const int group = static_cast<int>(a.group), d = static_cast<int>(a.d);
  const int rows = static_cast<int>(fault == AttentionBackwardFault::last_queries_dropped ? a.s * a.group / kTile * kTile : a.s * a.group);
  const int own_rows = 16 * (static_cast<int>(threadIdx.x) / 32);
  const int part = static_cast<int>(blockIdx.x) % (kD / kColumns) * kColumns, columns = min(d - part, kColumns);
  const Index first_key = Index{blockIdx.x / (kD / kColumns)} * Plan::kRows, b = blockIdx.z, g = blockIdx.y;
  const auto head = [&](int row) { return head_of<fault>(a, g, row); };
  const int from = static_cast<int>(min(first_row_of_keys<fault>(a, b, first_key), Index{rows})) / kTile * kTile;
  const int end = first_key < keys_of<fault>(a, b) ? rows : 0;
  const auto fetch = [&](int first) {
    if (first < end) {
      const int stage = first / kTile, here = min(end - first, kTile);
      fetch_rows<Plan, kD>(Plan::pair(stage), kTile, here, d, [&](int r) { return a.q.at(b, (first + r) / group, head(first + r)); });
      fetch_rows<Plan, kD>(Plan::pair(stage) + kTile * kPitch, kTile, here, d,
                           [&](int r) { return p.dy.at(b, (first + r) / group, head(first + r)); });
      if (const int r = static_cast<int>(threadIdx.x); r < kTile) {
        const QueryRow row = query_row<fault>(p, b, g, first + r, end);
        const bool left_out = fault == AttentionBackwardFault::first_head_of_group && (first + r) % group != 0;
        float* const scalars = Plan::scalars(stage);
        scalars[r] = row.logsumexp * kLog2E;
        scalars[kTile + r] = row.along;
        scalars[2 * kTile + r] = left_out ? 0.0f : static_cast<float>(min(max(row.keys - first_key, Index{0}), Index{Plan::kRows}));
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
    add_weighted_rows(fault == AttentionBackwardFault::values_from_ds ? ds : weights, upstream + part, kPitch, here, columns, of_values);
    add_weighted_rows(ds, queries + part, kPitch, here, columns, of_keys);
  };
  for (int first = from; first < end; first += kTile) {
    const int stage = first / kTile;
    if constexpr (Plan::kStages == 2) fetch(first + kTile);
    __pipeline_wait_prior(Plan::kStages - 1);
    __syncthreads();  // the tile has come for all threads
    if (first_key + own_rows < a.t) add_tile(Plan::pair(stage), Plan::scalars(stage), min(end - first, kTile));
    if constexpr (fault != AttentionBackwardFault::no_barrier_before_reuse) __syncthreads();  // the tile is done with
    if constexpr (Plan::kStages == 1) fetch(first + kTile);
  }
  __pipeline_wait_prior(0);
  const float none[2] = {0.0f, 0.0f};
  const std::uint64_t spoilt = fault == AttentionBackwardFault::masked_pairs_multiplied ? 0 : spoilt_rows(of_keys, none) | spoilt_rows(of_values, none);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = output_row(2 * half);
    const Index j = first_key + own_rows + r;
    if (j >= a.t || is_spoilt(spoilt, r)) continue;
    store_outputs(p.dk.at(b, j, g) + part, of_keys, half, fault == AttentionBackwardFault::key_scale_missing ? 1.0f : a.scale, columns);
    store_outputs(p.dv.at(b, j, g) + part, of_values, half, 1.0f, columns);
  }
  for (int r = 0; r < 16; ++r)
    if (const Index j = first_key + own_rows + r; is_spoilt(spoilt, r) && j < a.t) key_gradients<fault>(p, b, g, j, part, columns);
}

template <class S, int kD, AttentionBackwardFault fault>
void launch_attention_backward_mma(const AttentionBackward<S>& p, Device& device) {
  const Attention<S>& a = p.forward;
  const auto heads = static_cast<unsigned>(a.kv_heads), batch = static_cast<unsigned>(a.batch);
  if (a.s > 0) {
    using Plan = MmaPlan<S, kD, 2>;
    launch(&attention_backward_mma_queries<S, kD, fault>, {dim3(blocks_for(a.s * a.group, Plan::kRows), heads, batch), dim3(Plan::kThreads), Plan::kBytes},
           device, p);
  }
  if (a.t > 0) {
    using Plan = MmaPlan<S, kD, 2, 3>;
    launch(&attention_backward_mma_keys<S, kD, fault>,
           {dim3(blocks_for(a.t, Plan::kRows) * (kD / kMmaColumns<kD>), heads, batch), dim3(Plan::kThreads), Plan::kBytes}, device, p);
  }
}

/// Args: AttentionBackwardArgs. Throws Unavailable where the device has too little shared memory, or compute capability below 8.0.
template <class S, AttentionBackwardFault fault = AttentionBackwardFault::none, class Args>
void run_attention_backward_mma(const Args& args, Device& device) {
  need_mma("attention_backward_mma", device);
  with_row_sums<S, fault>(args, device, [&](const AttentionBackward<S>& p) {
    if (args.d <= 64) launch_attention_backward_mma<S, 64, fault>(p, device);
    else if (args.d <= 128) launch_attention_backward_mma<S, 128, fault>(p, device);
    else launch_attention_backward_mma<S, 256, fault>(p, device);
  });
}

/// The registry's row. Args: AttentionBackwardArgs.
template <class Args, class S, AttentionBackwardFault fault = AttentionBackwardFault::none>
Kernel attention_backward_mma_row(std::string_view id) {
  return {.op = "attention_backward",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = mma_arithmetic<S>(),
          .storage = dtype_of<S>,
          .source = "kernels/cuda/attention_backward_mma.cuh",
          .summary = sizeof(S) == 2 ? "16-bit tensor cores (mma.sync m16n8k16), 16 rows a warp, one pass for dq and one for dk and dv"
                                    : "three products of TF32 for one (mma.sync m16n8k8), 16 rows a warp, one pass for dq and one for dk and dv",
          .run = [](const Call& call, Device& device) { run_attention_backward_mma<S, fault>(Args::unpack(call), device); },
          .refuse = [](const Call& call) { return refuse_grid("batch", Args::unpack(call).batch, 1); },
          .priority = 2};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
