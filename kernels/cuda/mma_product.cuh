// Products of 16-bit matrices on tensor cores: 128x128 outputs a block, three stages of asynchronous copies.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/product.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline constexpr std::string_view kMmaProduct =
    "16-bit tensor cores (mma.sync m16n8k16), 128x128 block, 64x64 a warp, depth 32, three asynchronous stages";

namespace mma_product_detail {

/// Extents of a tile; stages, of which kAhead are on their way; elements in 16 bytes.
constexpr int kTile = 128, kDepth = 32, kStages = 3, kAhead = kStages - 1, kThreads = 128, kVector = 8;
/// C passes through shared memory in halves of 64 rows. With this pad the stores of a warp access 32 different banks.
constexpr int kHalfRows = kTile / 2, kOutputPitch = kTile + 8;

/// Elements that move as one word.
template <class T, int count>
struct alignas(count * sizeof(T)) Word {
  T at[count];
};

/// Shared-memory layout of an operand, as in its matrix: k along the rows ([kTile][kDepth]) or across them
/// ([kDepth][kTile]). The pad is the one that TensorCore asks for.
template <class S, bool k_inner>
struct MmaTile {
  static constexpr int kRows = k_inner ? kTile : kDepth, kColumns = k_inner ? kDepth : kTile;
  static constexpr int kPitch = kColumns + kVector, kElements = kRows * kPitch;

  /// Starts the copy of the tile whose first elements are `first` along the extent and k0 along k; zeros outside. A
  /// thread copies kVector neighbours of a row, `width` at a time: kVector if rows start at multiples of 16 bytes, 2 if
  /// at multiples of 4 bytes, else 1, which is synchronous, as at edges.
  template <int width>
  __device__ static void copy(S* tile, const S* matrix, Index ld, int first, int k0, int extent, int k) {
    constexpr int kPerRow = kColumns / kVector, kRowStep = kThreads / kPerRow;
    const int row0 = k_inner ? first : k0, column0 = k_inner ? k0 : first;
    const int rows = (k_inner ? extent : k) - row0, columns = (k_inner ? k : extent) - column0;
    const int column = static_cast<int>(threadIdx.x) % kPerRow * kVector;
#pragma unroll
    for (int row = static_cast<int>(threadIdx.x) / kPerRow; row < kRows; row += kRowStep) {
      const int inside = row < rows ? columns - column : 0;
      const S* const from = matrix + (row0 + row) * ld + column0 + column;
      S* const to = tile + row * kPitch + column;
      if (width > 1 && inside >= kVector) {
#pragma unroll
        for (int n = 0; n < kVector; n += width) __pipeline_memcpy_async(to + n, from + n, width * sizeof(S));
      } else {
        Word<S, kVector> word;
#pragma unroll
        for (int n = 0; n < kVector; ++n) word.at[n] = n < inside ? from[n] : S{};
        *reinterpret_cast<Word<S, kVector>*>(to) = word;
      }
    }
  }

  /// Returns the left operand of 16 rows of C from row i of the tile, for terms q .. q + 15.
  __device__ static typename TensorCore<S>::Left left(const S* tile, int i, int q) {
    if constexpr (k_inner) return TensorCore<S>::rows(tile + i * kPitch + q, kPitch);
    else return TensorCore<S>::columns_as_rows(tile + q * kPitch + i, kPitch);
  }
  /// Returns the right operands of 16 columns of C from column j of the tile.
  __device__ static typename TensorCore<S>::Right right(const S* tile, int j, int q) {
    if constexpr (k_inner) return TensorCore<S>::rows_as_columns(tile + j * kPitch + q, kPitch);
    else return TensorCore<S>::rows_as_rows(tile + q * kPitch + j, kPitch);
  }
};

/// A block's tile of outputs, for add_to_block() of an epilogue, which all threads call. Sums [i][j][e] of a thread are of
/// row y + 16 i + lane_row() + e / 2 * 8 and column x + 8 j + lane_column() + e % 2 of the tile.
struct OutputBlock {
  float* shared;  ///< the stages, free after __pipeline_wait_prior(0) and a barrier
  int m, n, row0, column0, y, x;
  bool computes;  ///< the warp has outputs; the same for all lanes

  __device__ static int lane_row() { return static_cast<int>(threadIdx.x) % 32 / 4; }
  __device__ static int lane_column() { return static_cast<int>(threadIdx.x) % 4 * 2; }
};

/// Stores the elements of `held` that are in C to its rows from row0 and columns from column0.
template <class S, class Out>
__device__ inline void store_half(const ProductOf<S, Out>& p, const Out* held, int row0, int column0) {
  constexpr int kWord = 16 / sizeof(Out), kWordsPerRow = kTile / kWord;
  const bool aligned = rows_start_at(p.c, p.c_ld, 16);
  for (int number = static_cast<int>(threadIdx.x); number < kHalfRows * kWordsPerRow; number += kThreads) {
    const int row = row0 + number / kWordsPerRow, column = number % kWordsPerRow * kWord;
    const Out* const from = held + number / kWordsPerRow * kOutputPitch + column;
    if (!aligned || row >= p.m || column0 + column + kWord > p.n) continue;
    *reinterpret_cast<Word<Out, kWord>*>(p.c + row * p.c_ld + column0 + column) =
        *reinterpret_cast<const Word<Out, kWord>*>(from);
  }
  // The rest of each row: all of it if C is not aligned.
  const int inside = min(p.n - column0, kTile), rest = aligned ? inside / kWord * kWord : 0;
  const int column = static_cast<int>(threadIdx.x);
  if (column < rest || column >= inside) return;
  for (int row = 0; row < kHalfRows && row0 + row < p.m; ++row)
    p.c[(row0 + row) * p.c_ld + column0 + column] = held[row * kOutputPitch + column];
}

/// Four warps form a 2x2 grid on the block, 64x64 outputs each: 4x8 tiles of mma.sync.
template <bool a_transposed, bool b_transposed, int width, class S, class Out, class Epilogue>
__global__ void __launch_bounds__(kThreads, 2) mma_product_kernel(ProductOf<S, Out> p, Epilogue epilogue) {
  static_assert(kTile == kThreads, "a thread stores the rest of a column");
  using TileA = MmaTile<S, !a_transposed>;
  using TileB = MmaTile<S, b_transposed>;
  S* const shared = dynamic_shared<S>();
  const auto a_stage = [&](int tile) { return shared + tile % kStages * (TileA::kElements + TileB::kElements); };
  const auto b_stage = [&](int tile) { return a_stage(tile) + TileA::kElements; };
  const int row0 = static_cast<int>(blockIdx.y) * kTile, column0 = static_cast<int>(blockIdx.x) * kTile;
  const int warp = static_cast<int>(threadIdx.x) / 32, y = warp / 2 * 64, x = warp % 2 * 64;
  const bool computes = row0 + y < p.m && column0 + x < p.n;  // the same for all lanes
  const int tiles = (p.k + kDepth - 1) / kDepth;
  // Every thread commits one batch a tile, empty past the last tile, so that the count of batches to wait for is
  // constant.
  const auto begin_copy = [&](int tile) {
    if (tile < tiles) {
      TileA::template copy<width>(a_stage(tile), p.a, p.a_ld, row0, tile * kDepth, p.m, p.k);
      TileB::template copy<width>(b_stage(tile), p.b, p.b_ld, column0, tile * kDepth, p.n, p.k);
    }
    __pipeline_commit();
  };

  float sums[4][8][4] = {};
#pragma unroll
  for (int tile = 0; tile < kAhead; ++tile) begin_copy(tile);
  for (int tile = 0; tile < tiles; ++tile) {
    __pipeline_wait_prior(kAhead - 1);
    // The tile has arrived for all threads, and all have read the stage of the previous tile, which is refilled next.
    __syncthreads();
    begin_copy(tile + kAhead);
    if (!computes) continue;
    const S* const a_tile = a_stage(tile);
    const S* const b_tile = b_stage(tile);
#pragma unroll
    for (int q = 0; q < kDepth; q += TensorCore<S>::kDepth) {
      typename TensorCore<S>::Right right[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) right[j] = TileB::right(b_tile, x + 16 * j, q);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto left = TileA::left(a_tile, y + 16 * i, q);
#pragma unroll
        for (int j = 0; j < 8; ++j) TensorCore<S>::multiply(sums[i][j], left, right[j / 2].x[j % 2]);
      }
    }
  }

  epilogue.add_to_block(OutputBlock{reinterpret_cast<float*>(shared), p.m, p.n, row0, column0, y, x, computes}, sums);
  const int lane = static_cast<int>(threadIdx.x) % 32, lane_row = lane / 4, lane_column = lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = row0 + y + 16 * i + lane_row + e / 2 * 8, column = column0 + x + 8 * j + lane_column + e % 2;
        if (row < p.m && column < p.n) sums[i][j][e] = epilogue(sums[i][j][e], row, column);
      }
  Out* const held = reinterpret_cast<Out*>(shared);
  __pipeline_wait_prior(0);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    __syncthreads();  // all threads have read what `held` overwrites
    if (y == half * kHalfRows) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
          for (int e = 0; e < 4; e += 2) {
            Word<Out, 2> two;
            store(two.at[0], sums[i][j][e]);
            store(two.at[1], sums[i][j][e + 1]);
            const int row = 16 * i + lane_row + e / 2 * 8, column = x + 8 * j + lane_column;
            *reinterpret_cast<Word<Out, 2>*>(held + row * kOutputPitch + column) = two;
          }
    }
    __syncthreads();
    store_half(p, held, row0 + half * kHalfRows, column0);
  }
}

}  // namespace mma_product_detail

/// c[i,j] = epilogue(sum_p a[i,p] * b[p,j]), rounded once to Out. Tensor cores form the sums (mma_arithmetic): products
/// are exact, and each step aligns and truncates some of them. Error at most growth·S, S = sum_p |a[i,p]||b[p,j]|, and
/// half a unit of Out. Reads each element of A n/128 times and of B m/128 times. Throws Unavailable below compute
/// capability 8.0. Source: PTX ISA, "mma.m16n8k16", "ldmatrix" and "cp.async"; CUDA C++ programming guide, "Pipeline
/// Primitives Interface".
template <bool a_transposed, bool b_transposed, class S, class Out, class Epilogue>
void mma_product_with(const ProductOf<S, Out>& p, const Epilogue& epilogue, Device& device) {
  namespace detail = mma_product_detail;
  need_mma("mma_product", device);
  constexpr std::size_t kStageBytes =
      (detail::MmaTile<S, !a_transposed>::kElements + detail::MmaTile<S, b_transposed>::kElements) * sizeof(S);
  static_assert(detail::kStages * kStageBytes >= detail::kHalfRows * detail::kOutputPitch * sizeof(Out),
                "half of C must fit into the stages");
  const LaunchShape shape{dim3(blocks_for(p.n, detail::kTile), blocks_for(p.m, detail::kTile)), dim3(detail::kThreads),
                          detail::kStages * kStageBytes};
  const auto aligned = [&](int bytes) {
    return rows_start_at(p.a, p.a_ld, bytes) && rows_start_at(p.b, p.b_ld, bytes);
  };
  auto* kernel = &detail::mma_product_kernel<a_transposed, b_transposed, 1, S, Out, Epilogue>;
  if (aligned(16)) kernel = &detail::mma_product_kernel<a_transposed, b_transposed, 8, S, Out, Epilogue>;
  else if (aligned(4)) kernel = &detail::mma_product_kernel<a_transposed, b_transposed, 2, S, Out, Epilogue>;
  launch(kernel, shape, device, p, epilogue);
}

template <bool a_transposed, bool b_transposed, class S, class Out = S>
void mma_product(const ProductOf<S, Out>& p, Device& device) {
  mma_product_with<a_transposed, b_transposed>(p, Plain{}, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
