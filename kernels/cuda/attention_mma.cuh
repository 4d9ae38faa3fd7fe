// Tensor core building blocks of attention and its gradients: a warp owns 16 rows, and scores become weights in the
// registers that hold them.
#pragma once

#include <cuda_pipeline.h>

#include <cfloat>
#include <cstdint>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/mma.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// Shared-memory layout: `kOwn` matrices of kRows rows that a block keeps, 16 rows of each per warp, then kStages pairs
/// of tiles of kTile rows that are streamed. kScalars: floats for each row of a tile.
template <class S, int kD, int kOwn, int kScalars = 0>
struct MmaPlan {
  static constexpr int kPitch = kD + 16 / static_cast<int>(sizeof(S));
  static constexpr int kWarps = kD <= 128 ? 8 : 4, kThreads = 32 * kWarps, kRows = 16 * kWarps;
  static constexpr int kTile = sizeof(S) == 4 && kD > 128 ? 32 : 64;
  static constexpr int kOwnElements = kOwn * kRows * kPitch, kPairElements = 2 * kTile * kPitch;
  static constexpr std::size_t kStageBytes = kPairElements * sizeof(S) + kScalars * kTile * sizeof(float);
  static constexpr std::size_t kLargest = 227 * 1024;  ///< limit per block, compute capability 9.0
  static constexpr int kStages = kOwnElements * sizeof(S) + 2 * kStageBytes <= kLargest ? 2 : 1;
  static constexpr std::size_t kBytes = kOwnElements * sizeof(S) + kStages * kStageBytes;
  static_assert(kBytes <= kLargest);

  /// Returns the first tile of the pair of stage n; the second follows.
  __device__ static S* pair(int n) { return dynamic_shared<S>() + kOwnElements + n % kStages * kPairElements; }
  __device__ static float* scalars(int n) {
    return reinterpret_cast<float*>(dynamic_shared<S>() + kOwnElements + kStages * kPairElements) +
           n % kStages * kScalars * kTile;
  }
};

/// rows[r] = row(r) for r < count, zeros for other rows and past d; copies asynchronously if 16 bytes are aligned.
template <class Plan, int kD, class S, class Row>
__device__ void fetch_rows(S* rows, int height, int count, Index d, Row row) {
  constexpr int kVectorElements = 16 / sizeof(S), kRowVectors = kD / kVectorElements;
  const int c = static_cast<int>(threadIdx.x) % kRowVectors * kVectorElements;
  for (int r = static_cast<int>(threadIdx.x) / kRowVectors; r < height; r += Plan::kThreads / kRowVectors) {
    S* const to = rows + r * Plan::kPitch + c;
    const S* const from = r < count ? row(r) + c : nullptr;
    if (r < count && c + kVectorElements <= d && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
      __pipeline_memcpy_async(to, from, 16);
    } else {
#pragma unroll
      for (int n = 0; n < kVectorElements; ++n) to[n] = r < count && c + n < d ? from[n] : S{};
    }
  }
}

/// Starts the copy of the keys and values of one of `tiles` tiles (of the first `most` keys) to their stage, as one
/// batch; commits an empty batch past the last tile.
template <class Plan, int kD, class S>
__device__ void fetch_keys(const Attention<S>& a, Index b, Index g, int tile, int tiles, Index most) {
  if (tile < tiles) {
    const Index first = Index{tile} * Plan::kTile;
    const int here = static_cast<int>(min(most - first, Index{Plan::kTile}));
    fetch_rows<Plan, kD>(Plan::pair(tile), Plan::kTile, here, a.d, [&](int r) { return a.k.at(b, first + r, g); });
    fetch_rows<Plan, kD>(Plan::pair(tile) + Plan::kTile * Plan::kPitch, Plan::kTile, here, a.d,
                         [&](int r) { return a.v.at(b, first + r, g); });
  }
  __pipeline_commit();
}

/// Returns the row and the column of output e of a lane among 16 rows and eight columns.
__device__ inline int output_row(int e) { return static_cast<int>(threadIdx.x) % 32 / 4 + e / 2 * 8; }
__device__ inline int output_column(int e) { return static_cast<int>(threadIdx.x) % 4 * 2 + e % 2; }

/// Returns the reduction over the four lanes that share a row of outputs.
template <class Operation>
__device__ inline float across_row(float x) {
  return across<Operation>(x, 4);
}

/// Returns the rows of a warp's 16 with NaN or Inf in an output or in `beside`: bit 4 r for row r. A zero weight times
/// a NaN or Inf that the row does not see gives NaN, and so does Inf in three products of TF32: such rows are
/// recomputed one by one.
template <int columns>
__device__ inline std::uint64_t nonfinite_rows(const float (&sums)[columns][4], const float (&beside)[2]) {
  std::uint64_t nonfinite_mask = 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = beside[half] * FLT_MIN;  // each term is less than 4 if finite, so that the sum is finite
#pragma unroll
    for (int n = 0; n < columns; ++n) sum = fmaf(sums[n][2 * half + 1], FLT_MIN, fmaf(sums[n][2 * half], FLT_MIN, sum));
    sum = across_row<Plus>(sum);
    nonfinite_mask |= std::uint64_t{__ballot_sync(0xffffffffU, !(fabsf(sum) <= FLT_MAX))} << 32 * half;
  }
  return nonfinite_mask;
}
__device__ inline bool is_nonfinite_row(std::uint64_t nonfinite_mask, int row) {
  return nonfinite_mask >> 4 * row & 1U;
}

/// Stores factor · outputs 2 half and 2 half + 1 of each eight columns to a row of d elements.
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

}  // namespace assay::ASSAY_CUDA_NAMESPACE
