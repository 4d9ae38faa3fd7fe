// Attention with an online softmax: a warp per query, tiles of 64 queries by 64 keys, and tensor cores, 16 queries a
// warp; and the kernels of attention_wgmma.cuh and attention_wgmma_tf32.cuh.
#include "ops/attention.hpp"

#include "kernels/cuda/attention_wgmma_tf32.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_attention {
namespace {

using attention_query::attend_query, attention_query::seen_by;
using ops::AttentionArgs;

template <class S>
__global__ void __launch_bounds__(32 * kWarpQueries) attention_warp(Attention<S> a) {
  const Index heads = a.kv_heads * a.group;
  const Index number = Index{blockIdx.x} * kWarpQueries + static_cast<int>(threadIdx.x) / 32;
  // whole warps
  if (number < a.batch * a.s * heads) attend_query(a, number / heads / a.s, number % heads, number / heads % a.s);
}

/// One block per 64 rows of a key-value head: query i of head h of the group is row i * group + h, so that the heads of
/// a group share loaded keys and values. Keys, then values of the same 64 places, pass through one buffer.
template <class S, int kD>
__global__ void __launch_bounds__(256) attention_tiled(Attention<S> a) {
  using Tiles = AttentionTiles<kD>;
  float* const queries = dynamic_shared<float>();
  float* const tile = queries + 64 * Tiles::kPitch;
  float* const weights = tile + 64 * Tiles::kPitch;
  int* const special = reinterpret_cast<int*>(weights + Tiles::kQueries * Tiles::kWeightPitch);
  const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
  // Later blocks see more keys: start them first.
  const Index first_row = (Index{gridDim.x} - 1 - blockIdx.x) * Tiles::kQueries, rows = a.s * a.group;
  const Index b = blockIdx.z, g = blockIdx.y;
  const auto head = [&](Index row) { return g * a.group + row % a.group; };
  const Index count = rows - first_row < Tiles::kQueries ? rows - first_row : Tiles::kQueries;
  // Rows are in order of position, hence of the number of keys they see.
  const Index least = seen_by(a, b, first_row / a.group);
  const Index most = seen_by(a, b, (first_row + count - 1) / a.group);

  load_rows<kD, S>(queries, count, a.d, a.q_aligned,
                   [&](int r) { return a.q.at(b, (first_row + r) / a.group, head(first_row + r)); });
  float sums[4][kD / 16] = {}, largest[4], total[4];
  Index keys[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Index row = first_row + 4 * ty + i;
    largest[i] = -INFINITY;
    total[i] = 0.0f;
    keys[i] = row < rows ? seen_by(a, b, row / a.group) : 0;
  }
  for (Index first = 0; first < most; first += Tiles::kKeys) {
    __syncthreads();  // all threads have read the previous values
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
        score[i][j] *= a.scale;
        if (tx + 16 * j < own[i]) grown = larger(grown, score[i][j]);
      }
      grown = larger(largest[i], across<Larger>(grown, 16));
      const float shift = grown == -INFINITY ? 0.0f : grown;
      if (largest[i] < grown && largest[i] > -INFINITY) {
        const float factor = expf(largest[i] - grown);
        total[i] *= factor;
#pragma unroll
        for (int c = 0; c < kD / 16; ++c) sums[i][c] *= factor;
      }
      largest[i] = grown;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = tx + 16 * j < own[i] ? expf(score[i][j] - shift) : 0.0f;
        total[i] += weight;
        weights[(4 * ty + i) * Tiles::kWeightPitch + tx + 16 * j] = weight;
      }
    }
    __syncthreads();                           // all threads have read the keys
    const bool partly = least < first + here;  // some row does not see all of the tile
    load_rows<kD, S>(
        tile, here, a.d, a.v_aligned, [&](int r) { return a.v.at(b, first + r, g); }, least - first,
        partly ? special : nullptr);
    __syncthreads();
    // A zero weight times NaN would reach rows that do not see the value.
    if (partly && *special != 0)
      weights_by_rows<kD>(weights, tile, ty, tx, sums, [&](int i, int j) { return j < own[i]; });
    else weights_by_rows<kD>(weights, tile, ty, tx, sums);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Index row = first_row + 4 * ty + i;
    const float sum = across<Plus>(total[i], 16);  // all lanes take part
    if (row >= rows) continue;
    const bool nothing = sum == 0.0f;
    const float factor = nothing ? 0.0f : 1.0f / sum;
#pragma unroll
    for (float& x : sums[i]) x = nothing ? 0.0f : x;
    store_row<kD>(a.y.at(b, row / a.group, head(row)), sums[i], factor, tx, a.d, a.y_aligned);
    if (tx == 0) *a.logsumexp.at(b, row / a.group, head(row)) = nothing ? -INFINITY : largest[i] + logf(sum);
  }
}

template <class S>
void run_warp(const AttentionArgs& args, Device& device) {
  const Attention<S> a = attention_of<S>(args);
  const Index queries = a.batch * a.s * a.kv_heads * a.group;
  if (queries > 0)
    launch(&attention_warp<S>, {dim3(blocks_for(queries, kWarpQueries)), dim3(32 * kWarpQueries)}, device, a);
}

template <class S, int kD>
void launch_tiled(const Attention<S>& a, Device& device) {
  using Tiles = AttentionTiles<kD>;
  const dim3 grid(blocks_for(a.s * a.group, Tiles::kQueries), static_cast<unsigned>(a.kv_heads),
                  static_cast<unsigned>(a.batch));
  launch(&attention_tiled<S, kD>, {grid, dim3(Tiles::kThreads), Tiles::kBytes}, device, a);
}

template <class S>
void run_tiled(const AttentionArgs& args, Device& device) {
  const Attention<S> a = attention_of<S>(args);
  if (a.batch == 0 || a.s == 0) return;
  if (a.d <= 64) launch_tiled<S, 64>(a, device);
  else if (a.d <= 128) launch_tiled<S, 128>(a, device);
  else launch_tiled<S, 256>(a, device);
}

/// Rows as in attention_tiled; the pair of tiles of a stage holds keys and values.
template <class S, int kD>
__global__ void __launch_bounds__(MmaPlan<S, kD, 1>::kThreads) attention_mma(Attention<S> a) {
  using Plan = MmaPlan<S, kD, 1>;
  constexpr int kTile = Plan::kTile, kPitch = Plan::kPitch;
  const int rows = static_cast<int>(a.s * a.group), group = static_cast<int>(a.group), d = static_cast<int>(a.d);
  const int first_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * Plan::kRows,
            warp = static_cast<int>(threadIdx.x) / 32;
  const int count = min(rows - first_row, Plan::kRows);
  const Index b = blockIdx.z, g = blockIdx.y;
  const auto head = [&](int row) { return g * group + row % group; };
  const Index most = seen_by(a, b, (first_row + count - 1) / group);
  const int tiles = static_cast<int>((most + kTile - 1) / kTile);
  const auto fetch = [&](int tile) { fetch_keys<Plan, kD>(a, b, g, tile, tiles, most); };
  S* const queries = dynamic_shared<S>();
  fetch_rows<Plan, kD>(queries, Plan::kRows, count, d,
                       [&](int r) { return a.q.at(b, (first_row + r) / group, head(first_row + r)); });
  fetch(0);

  Index seen[2];
  float sums[kD / 8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, total[2] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + 16 * warp + output_row(2 * half);
    seen[half] = row < rows ? seen_by(a, b, row / group) : 0;
  }
  const float scale = a.scale * kLog2E;
  const Larger larger;
  const auto attend = [&](const S* keys, Index first) {
    const S* const values = keys + kTile * kPitch;
    const int here = static_cast<int>(min(most - first, Index{kTile}));
    float scores[kTile / 8][4];
    dot_rows(queries + 16 * warp * kPitch, keys, kPitch, here, d, scores);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int own = static_cast<int>(min(max(seen[half] - first, Index{0}), Index{kTile}));
      float grown = -INFINITY;
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          scores[n][e] *= scale;
          if (8 * n + output_column(e) < own) grown = larger(grown, scores[n][e]);
        }
      grown = larger(largest[half], across_row<Larger>(grown));
      const float shift = grown == -INFINITY ? 0.0f : grown;
      const float factor = largest[half] < grown && largest[half] > -INFINITY ? exp2f(largest[half] - grown) : 1.0f;
      largest[half] = grown;
      total[half] *= factor;
#pragma unroll
      for (int n = 0; n < kD / 8; ++n) sums[n][2 * half] *= factor, sums[n][2 * half + 1] *= factor;
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          const float weight = 8 * n + output_column(e) < own ? exp2f(scores[n][e] - shift) : 0.0f;
          total[half] += weight;
          scores[n][e] = weight;
        }
    }
    add_weighted_rows(scores, values, kPitch, here, d, sums);
  };
  for (int tile = 0; tile < tiles; ++tile) {
    if constexpr (Plan::kStages == 2) fetch(tile + 1);
    __pipeline_wait_prior(Plan::kStages - 1);
    __syncthreads();  // the tile has arrived for all threads
    if (first_row + 16 * warp < rows) attend(Plan::pair(tile), Index{tile} * kTile);
    __syncthreads();  // all threads have read the tile
    if constexpr (Plan::kStages == 1) fetch(tile + 1);
  }
  __pipeline_wait_prior(0);
#pragma unroll
  for (int half = 0; half < 2; ++half) total[half] = across_row<Plus>(total[half]);
  const std::uint64_t nonfinite_mask = nonfinite_rows(sums, total);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = output_row(2 * half), row = first_row + 16 * warp + r;
    if (row >= rows || is_nonfinite_row(nonfinite_mask, r)) continue;
    const bool nothing = total[half] == 0.0f;
    store_outputs(a.y.at(b, row / group, head(row)), sums, half, nothing ? 0.0f : 1.0f / total[half], a.d);
    if (threadIdx.x % 4 == 0)
      *a.logsumexp.at(b, row / group, head(row)) = nothing ? -INFINITY : (largest[half] + log2f(total[half])) * kLn2;
  }
  for (int r = 0; r < 16; ++r)
    if (const int row = first_row + 16 * warp + r; is_nonfinite_row(nonfinite_mask, r) && row < rows)
      attend_query(a, b, head(row), row / group);
}

template <class S, int kD>
void launch_mma(const Attention<S>& a, Device& device) {
  using Plan = MmaPlan<S, kD, 1>;
  const dim3 grid(blocks_for(a.s * a.group, Plan::kRows), static_cast<unsigned>(a.kv_heads),
                  static_cast<unsigned>(a.batch));
  launch(&attention_mma<S, kD>, {grid, dim3(Plan::kThreads), Plan::kBytes}, device, a);
}

/// Throws Unavailable if the device has too little shared memory, or compute capability below 8.0.
template <class S>
void run_mma(const AttentionArgs& args, Device& device) {
  need_mma("attention_mma", device);
  const Attention<S> a = attention_of<S>(args);
  if (a.batch == 0 || a.s == 0) return;
  if (a.d <= 64) launch_mma<S, 64>(a, device);
  else if (a.d <= 128) launch_mma<S, 128>(a, device);
  else launch_mma<S, 256>(a, device);
}

std::optional<std::string> refuse(const AttentionArgs& args) { return refuse_grid("batch", args.batch, 1); }

template <class S>
KernelRegistration add_warp(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda, .online_tile = 32},
                             .storage = dtype_of<S>,
                             .summary = "a warp a query, 32 keys at a time",
                             .run = &run_typed<AttentionArgs, &run_warp<S>>});
}

template <class S>
KernelRegistration add_tiled(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda, .online_tile = 64},
                             .storage = dtype_of<S>,
                             .summary = "64 queries by 64 keys a block, heads of a group together, 4x4 scores a thread",
                             .run = &run_typed<AttentionArgs, &run_tiled<S>>,
                             .refuse = &refuse_typed<AttentionArgs, &refuse>,
                             .priority = 1});
}

template <class S>
KernelRegistration add_mma(std::string_view id) {
  Arithmetic arithmetic = mma_arithmetic<S>();
  arithmetic.online_tile = MmaPlan<S, 256, 1>::kTile;  // the shortest
  return KernelRegistration(
      {.id = id,
       .arithmetic = arithmetic,
       .storage = dtype_of<S>,
       .summary =
           sizeof(S) == 2
               ? "16-bit tensor cores (mma.sync m16n8k16), 16 queries a warp, scores stay in registers"
               : "three products of TF32 for one (mma.sync m16n8k8), 16 queries a warp, scores stay in registers",
       .run = &run_typed<AttentionArgs, &run_mma<S>>,
       .refuse = &refuse_typed<AttentionArgs, &refuse>,
       .priority = 2});
}

std::optional<std::string> refuse_by_boxes(const AttentionArgs& args) {
  if (auto why = refuse(args)) return why;
  if (auto why = hopper::refuse_device()) return why;
  switch (args.q.dtype()) {
    case DType::f16: return by_wgmma::refuse(attention_of<Half>(args));
    case DType::bf16: return by_wgmma::refuse(attention_of<BFloat16>(args));
    default: return by_wgmma_tf32::refuse(attention_of<float>(args));
  }
}

template <class S>
void run_wgmma(const AttentionArgs& args, Device& device) {
  by_wgmma::run(attention_of<S>(args), device);
}

template <class S>
KernelRegistration add_wgmma(std::string_view id) {
  Arithmetic arithmetic = mma_arithmetic<S>();
  arithmetic.online_tile = by_wgmma::Plan<128>::kKeys;
  // A flushed weight is far below what f16 holds.
  arithmetic.flushes_subnormals = std::is_same_v<S, BFloat16>;
  return KernelRegistration(
      {.id = id,
       .arithmetic = arithmetic,
       .storage = dtype_of<S>,
       .summary = "16-bit tensor cores (wgmma m64n128k16), 128 queries by 128 keys, a warp that copies and two "
                  "warpgroups of 64 queries, two stages of tensor copies, products beside the next softmax",
       .run = &run_typed<AttentionArgs, &run_wgmma<S>>,
       .refuse = &refuse_typed<AttentionArgs, &refuse_by_boxes>,
       .priority = 3,
       .limits = &by_wgmma::heads_of_whole_boxes<5>()});
}

void run_wgmma_tf32(const AttentionArgs& args, Device& device) {
  by_wgmma_tf32::run(attention_of<float>(args), device);
}

KernelRegistration add_wgmma_tf32(std::string_view id) {
  Arithmetic arithmetic = mma_arithmetic<float>();
  arithmetic.online_tile = by_wgmma_tf32::kKeys;
  return KernelRegistration(
      {.id = id,
       .arithmetic = arithmetic,
       .storage = DType::f32,
       .summary = "three products of TF32 for one (wgmma m64n64k8, m64n128k8), 128 queries by 64 keys, values "
                  "transposed and lower parts written before, a warp that copies and two warpgroups of 64 queries",
       .run = &run_typed<AttentionArgs, &run_wgmma_tf32>,
       .refuse = &refuse_typed<AttentionArgs, &refuse_by_boxes>,
       .priority = 3,
       .limits = &by_wgmma::heads_of_whole_boxes<5>()});
}

const KernelRegistration registrations[] = {
    add_warp<float>("attention/" ASSAY_CUDA_NAME "/warp"),
    add_warp<Half>("attention/" ASSAY_CUDA_NAME "/warp_f16"),
    add_warp<BFloat16>("attention/" ASSAY_CUDA_NAME "/warp_bf16"),
    add_tiled<float>("attention/" ASSAY_CUDA_NAME "/tiled"),
    add_tiled<Half>("attention/" ASSAY_CUDA_NAME "/tiled_f16"),
    add_tiled<BFloat16>("attention/" ASSAY_CUDA_NAME "/tiled_bf16"),
    add_mma<float>("attention/" ASSAY_CUDA_NAME "/mma_tf32x3"),
    add_mma<Half>("attention/" ASSAY_CUDA_NAME "/mma_f16"),
    add_mma<BFloat16>("attention/" ASSAY_CUDA_NAME "/mma_bf16"),
    add_wgmma<Half>("attention/" ASSAY_CUDA_NAME "/wgmma_f16"),
    add_wgmma<BFloat16>("attention/" ASSAY_CUDA_NAME "/wgmma_bf16"),
    add_wgmma_tf32("attention/" ASSAY_CUDA_NAME "/wgmma_tf32x3"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_attention
