// Attention on tensor cores: 16 queries a warp, whose scores become weights in the registers where they arise.
#pragma once

#include <cuda_pipeline.h>

#include <cfloat>
#include <cstdint>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/mma.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// Rows in shared memory: `kOwn` matrices of kRows rows that a block keeps, 16 of each a warp, then kStages pairs of tiles of kTile
/// rows that pass through. kScalars: floats for each row of a tile.
template <class S, int kD, int kOwn, int kScalars = 0>
struct MmaPlan {
  static constexpr int kPitch = kD + 16 / static_cast<int>(sizeof(S));
  static constexpr int kWarps = kD <= 128 ? 8 : 4, kThreads = 32 * kWarps, kRows = 16 * kWarps;
  static constexpr int kTile = sizeof(S) == 4 && kD > 128 ? 32 : 64;
  static constexpr int kOwnElements = kOwn * kRows * kPitch, kPairElements = 2 * kTile * kPitch;
  static constexpr std::size_t kStageBytes = kPairElements * sizeof(S) + kScalars * kTile * sizeof(float);
  static constexpr std::size_t kLargest = 227 * 1024;  ///< a block's at most, compute capability 9.0
  static constexpr int kStages = kOwnElements * sizeof(S) + 2 * kStageBytes <= kLargest ? 2 : 1;
  static constexpr std::size_t kBytes = kOwnElements * sizeof(S) + kStages * kStageBytes;
  static_assert(kBytes <= kLargest);

  /// First tile of the pair of stage n; the second follows.
  __device__ static S* pair(int n) { return dynamic_shared<S>() + kOwnElements + n % kStages * kPairElements; }
  __device__ static float* scalars(int n) {
    return reinterpret_cast<float*>(dynamic_shared<S>() + kOwnElements + kStages * kPairElements) + n % kStages * kScalars * kTile;
  }
};

/// Products of tensor cores: 16-bit inputs are exact, and what is multiplied on the way is rounded to their format; float32 is
/// three products of TF32. Sums are truncated (kTf32Arithmetic has what is known).
template <class S>
constexpr Arithmetic mma_arithmetic() {
  return {.inputs = std::is_same_v<S, Half> ? Format::f16 : std::is_same_v<S, BFloat16> ? Format::bf16 : Format::tf32x3,
          .accumulation = Rounding::toward_zero,
          .block = 4,
          .functions = FunctionLibrary::cuda};
}

/// rows[r] = row(r), r < count, zeros behind and past d; copied asynchronously where 16 bytes are aligned.
template <class Plan, int kD, class S, class Row>
__device__ void fetch_rows(S* rows, int height, int count, Index d, Row row) {
  constexpr int kLot = 16 / sizeof(S), kLots = kD / kLot;
  const int c = static_cast<int>(threadIdx.x) % kLots * kLot;
  for (int r = static_cast<int>(threadIdx.x) / kLots; r < height; r += Plan::kThreads / kLots) {
    S* const to = rows + r * Plan::kPitch + c;
    const S* const from = r < count ? row(r) + c : nullptr;
    if (r < count && c + kLot <= d && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
      __pipeline_memcpy_async(to, from, 16);
    } else {
#pragma unroll
      for (int n = 0; n < kLot; ++n) to[n] = r < count && c + n < d ? from[n] : S{};
    }
  }
}

/// Starts keys and values of one of `tiles` tiles, of the first `most` keys, on their way to their stage, as one batch; an empty one
/// past the last.
template <class Plan, int kD, class S>
__device__ void fetch_keys(const Attention<S>& a, Index b, Index g, int tile, int tiles, Index most) {
  if (tile < tiles) {
    const Index first = Index{tile} * Plan::kTile;
    const int here = static_cast<int>(min(most - first, Index{Plan::kTile}));
    fetch_rows<Plan, kD>(Plan::pair(tile), Plan::kTile, here, a.d, [&](int r) { return a.k.at(b, first + r, g); });
    fetch_rows<Plan, kD>(Plan::pair(tile) + Plan::kTile * Plan::kPitch, Plan::kTile, here, a.d, [&](int r) { return a.v.at(b, first + r, g); });
  }
  __pipeline_commit();
}

/// Row and column of output e of a lane among 16 rows and eight columns.
__device__ inline int output_row(int e) { return static_cast<int>(threadIdx.x) % 32 / 4 + e / 2 * 8; }
__device__ inline int output_column(int e) { return static_cast<int>(threadIdx.x) % 4 * 2 + e % 2; }

/// Sum over the four lanes that share a row of outputs.
template <class Operation>
__device__ inline float across_row(float x) {
  return across<Operation>(x, 4);
}

/// Of the 16 rows of a warp, those with NaN or Inf in some output or in `beside`: bit 4 r for row r. A weight of zero times what a row
/// does not see makes NaN of it, and so does Inf in three products of TF32: such rows are computed once more, one by one.
template <int columns>
__device__ inline std::uint64_t spoilt_rows(const float (&sums)[columns][4], const float (&beside)[2]) {
  std::uint64_t spoilt = 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = beside[half] * FLT_MIN;  // each less than 4 where finite, so that the sum is finite
#pragma unroll
    for (int n = 0; n < columns; ++n) sum = fmaf(sums[n][2 * half + 1], FLT_MIN, fmaf(sums[n][2 * half], FLT_MIN, sum));
    sum = across_row<Plus>(sum);
    spoilt |= std::uint64_t{__ballot_sync(0xffffffffU, !(fabsf(sum) <= FLT_MAX))} << 32 * half;
  }
  return spoilt;
}
__device__ inline bool is_spoilt(std::uint64_t spoilt, int row) { return spoilt >> 4 * row & 1U; }

/// factor · outputs 2 half and 2 half + 1 of each eight columns to a row of d elements.
template <class S, int columns>
__device__ inline void store_outputs(S* row, const float (&sums)[columns][4], int half, float factor, Index d) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(row) % (2 * sizeof(S)) == 0;
#pragma unroll
  for (int n = 0; n < columns; ++n) {
    const int c = 8 * n + output_column(0);
    struct alignas(2 * sizeof(S)) {
      S at[2];
    } two;
    store(two.at[0], sums[n][2 * half] * factor);
    store(two.at[1], sums[n][2 * half + 1] * factor);
    if (aligned && c + 2 <= d) {
      *reinterpret_cast<decltype(two)*>(row + c) = two;
    } else {
      if (c < d) row[c] = two.at[0];
      if (c + 1 < d) row[c + 1] = two.at[1];
    }
  }
}

inline constexpr float kLog2E = 1.44269504088896340736f, kLn2 = 0.693147180559945309417f;

/// Rows as in attention_tiled; the pair of a stage is keys and values.
template <class S, int kD, AttentionFault fault>
__global__ void __launch_bounds__(MmaPlan<S, kD, 1>::kThreads) attention_mma(Attention<S> a) {
  using Plan = MmaPlan<S, kD, 1>;
  constexpr int kTile = Plan::kTile, kPitch = Plan::kPitch;
  const int rows = static_cast<int>(a.s * a.group), group = static_cast<int>(a.group), d = static_cast<int>(a.d);
  const int first_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * Plan::kRows, warp = static_cast<int>(threadIdx.x) / 32;
  const int count = min(rows - first_row, Plan::kRows);
  const Index b = blockIdx.z, g = blockIdx.y;
  const auto head = [&](int row) { return fault == AttentionFault::heads_by_modulo ? row % group * a.kv_heads + g : g * group + row % group; };
  const Index most = seen_by<fault>(a, b, (first_row + count - 1) / group);
  const int tiles = static_cast<int>(fault == AttentionFault::tile_tail_dropped ? most / kTile : (most + kTile - 1) / kTile);
  const auto fetch = [&](int tile) { fetch_keys<Plan, kD>(a, b, g, tile, tiles, most); };
  S* const queries = dynamic_shared<S>();
  fetch_rows<Plan, kD>(queries, Plan::kRows, count, d, [&](int r) { return a.q.at(b, (first_row + r) / group, head(first_row + r)); });
  fetch(0);

  Index seen[2];
  float sums[kD / 8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, total[2] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + 16 * warp + output_row(2 * half);
    seen[half] = row < rows ? seen_by<fault>(a, b, row / group) : 0;
  }
  const float scale = (fault == AttentionFault::scale_by_d ? rsqrtf(static_cast<float>(a.d)) : a.scale) * kLog2E;
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
      if (fault != AttentionFault::sum_not_rescaled) total[half] *= factor;
      if (fault != AttentionFault::mean_not_rescaled)
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
    if constexpr (fault != AttentionFault::no_wait) __pipeline_wait_prior(Plan::kStages - 1);
    if constexpr (fault != AttentionFault::no_barrier_before_values) __syncthreads();  // the tile has come for all threads
    if (first_row + 16 * warp < rows) attend(Plan::pair(tile), Index{tile} * kTile);
    if constexpr (fault != AttentionFault::no_barrier_before_keys) __syncthreads();  // the tile is done with
    if constexpr (Plan::kStages == 1) fetch(tile + 1);
  }
  __pipeline_wait_prior(0);
#pragma unroll
  for (int half = 0; half < 2; ++half) total[half] = across_row<Plus>(total[half]);
  const std::uint64_t spoilt = fault == AttentionFault::masked_values_multiplied ? 0 : spoilt_rows(sums, total);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = output_row(2 * half), row = first_row + 16 * warp + r;
    if (row >= rows || is_spoilt(spoilt, r)) continue;
    const bool nothing = total[half] == 0.0f && fault != AttentionFault::masked_row_nan;
    store_outputs(a.y.at(b, row / group, head(row)), sums, half, nothing ? 0.0f : 1.0f / total[half], a.d);
    if (threadIdx.x % 4 == 0 && fault != AttentionFault::logsumexp_unwritten)
      *a.logsumexp.at(b, row / group, head(row)) = nothing ? -INFINITY : (largest[half] + log2f(total[half])) * kLn2;
  }
  for (int r = 0; r < 16; ++r)
    if (const int row = first_row + 16 * warp + r; is_spoilt(spoilt, r) && row < rows) attend_query<fault>(a, b, head(row), row / group);
}

template <class S, int kD, AttentionFault fault>
void launch_attention_mma(const Attention<S>& a, Device& device) {
  using Plan = MmaPlan<S, kD, 1>;
  const dim3 grid(blocks_for(a.s * a.group, Plan::kRows), static_cast<unsigned>(a.kv_heads), static_cast<unsigned>(a.batch));
  launch(&attention_mma<S, kD, fault>, {grid, dim3(Plan::kThreads), Plan::kBytes}, device, a);
}

/// Throws Unavailable below compute capability 8.0.
inline void need_mma([[maybe_unused]] std::string_view kernel, [[maybe_unused]] Device& device) {
#if defined(__CUDACC__)
  if (const int capability = static_cast<CudaDevice&>(device).compute_capability(); capability < 80)
    throw Unavailable(std::string(kernel), "its tensor instructions need compute capability 8.0; this device has " +
                                               std::to_string(capability / 10) + "." + std::to_string(capability % 10));
#endif
}

/// Args: AttentionArgs. Throws Unavailable where the device has too little shared memory, or compute capability below 8.0.
template <class S, AttentionFault fault = AttentionFault::none, class Args>
void run_attention_mma(const Args& args, Device& device) {
  need_mma("attention_mma", device);
  Attention<S> a = attention_of<S>(args);
  if (fault == AttentionFault::first_sequence_only) a.batch = std::min<Index>(a.batch, 1);
  if (a.batch == 0 || a.s == 0) return;
  if (a.d <= 64) launch_attention_mma<S, 64, fault>(a, device);
  else if (a.d <= 128) launch_attention_mma<S, 128, fault>(a, device);
  else launch_attention_mma<S, 256, fault>(a, device);
}

/// The registry's row. Args: AttentionArgs.
template <class Args, class S, AttentionFault fault = AttentionFault::none>
Kernel attention_mma_row(std::string_view id) {
  Arithmetic arithmetic = mma_arithmetic<S>();
  arithmetic.online_tile = MmaPlan<S, 256, 1>::kTile;  // the shortest
  return {.op = "attention",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = arithmetic,
          .storage = dtype_of<S>,
          .source = "kernels/cuda/attention_mma.cuh",
          .summary = sizeof(S) == 2 ? "16-bit tensor cores (mma.sync m16n8k16), 16 queries a warp, scores stay in registers"
                                    : "three products of TF32 for one (mma.sync m16n8k8), 16 queries a warp, scores stay in registers",
          .run = [](const Call& call, Device& device) { run_attention_mma<S, fault>(Args::unpack(call), device); },
          .refuse = [](const Call& call) { return refuse_grid("batch", Args::unpack(call).batch, 1); },
          .priority = 2};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
