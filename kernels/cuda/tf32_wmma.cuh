// TF32 tensor cores through the WMMA API: 128x128 outputs a block, three stages of asynchronous copies.
#pragma once

#include <cuda_pipeline.h>
#include <mma.h>

#include "kernels/cuda/product.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline constexpr std::string_view kTf32Wmma =
    "TF32 tensor cores (WMMA 16x16x8), 128x128 block, 64x64 a warp, depth 32, three asynchronous stages";
/// Inputs are rounded to nearest; sums are truncated in blocks of four products. This is documented for A100; later
/// devices are assumed no better (runtime/cuda_host/wmma.hpp gives the source).
inline constexpr Arithmetic kTf32Arithmetic{
    .inputs = Format::tf32, .accumulation = Rounding::toward_zero, .block = 4, .functions = FunctionLibrary::cuda};

namespace tf32_wmma_detail {

namespace wmma = nvcuda::wmma;

constexpr int kTile = 128, kDepth = 32, kStages = 3, kThreads = 128;
constexpr int kOutputPitch = kTile + 4;

/// Shared-memory layout of an operand, as in its matrix: k along the rows ([kTile][kDepth]) or across them
/// ([kDepth][kTile]). With these pads the 32 lanes of a fragment's load access 32 different banks.
template <bool k_inner>
struct Tile {
  static constexpr int kRows = k_inner ? kTile : kDepth, kColumns = k_inner ? kDepth : kTile;
  static constexpr int kPitch = kColumns + (k_inner ? 4 : 8), kFloats = kRows * kPitch;

  /// Returns the offset of element (i of the tile's extent, q of its depth).
  __device__ static constexpr int at(int i, int q) { return k_inner ? i * kPitch + q : q * kPitch + i; }

  /// Starts the copy of the tile whose first elements are `first` along the extent and k0 along k; zeros outside.
  /// `width`: 4 if rows start at multiples of 16 bytes, else 1.
  template <int width>
  __device__ static void copy(float* tile, const float* matrix, Index ld, int first, int k0, int extent, int k) {
    constexpr int kPerRow = kColumns / width, kRowStep = kThreads / kPerRow;
    const int row0 = k_inner ? first : k0, column0 = k_inner ? k0 : first;
    const int rows = (k_inner ? extent : k) - row0, columns = (k_inner ? k : extent) - column0;
    const int column = static_cast<int>(threadIdx.x) % kPerRow * width;
    int row = static_cast<int>(threadIdx.x) / kPerRow;
    const float* from = matrix + (row0 + row) * ld + column0 + column;
    float* to = tile + row * kPitch + column;
#pragma unroll 1  // registers are needed for the sums
    for (; row < kRows; row += kRowStep) {
      const int valid = row < rows ? columns - column : 0;
      if (valid >= width) {
        __pipeline_memcpy_async(to, from, sizeof(float) * width);
      } else {
#pragma unroll
        for (int i = 0; i < width; ++i) to[i] = i < valid ? from[i] : 0.0f;
      }
      from += kRowStep * ld;
      to += kRowStep * kPitch;
    }
  }
};

template <bool a_transposed, bool b_transposed, int width>
__global__ void __launch_bounds__(kThreads, 2) tf32_wmma_kernel(Product p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  using TileA = Tile<!a_transposed>;
  using TileB = Tile<b_transposed>;
  using LayoutA = std::conditional_t<a_transposed, wmma::col_major, wmma::row_major>;
  using LayoutB = std::conditional_t<b_transposed, wmma::col_major, wmma::row_major>;
  float* const shared = dynamic_shared<float>();
  const auto a_stage = [&](int s) { return shared + s * (TileA::kFloats + TileB::kFloats); };
  const auto b_stage = [&](int s) { return a_stage(s) + TileA::kFloats; };
  const int row0 = static_cast<int>(blockIdx.y) * kTile, column0 = static_cast<int>(blockIdx.x) * kTile;
  const int warp = static_cast<int>(threadIdx.x) / 32, y = warp / 2 * 64, x = warp % 2 * 64;
  const int tiles = (p.k + kDepth - 1) / kDepth;
  // Every thread commits one batch a tile, empty past the last tile, so that the count of batches to wait for is
  // constant.
  const auto fetch = [&](int tile) {
    if (tile < tiles) {
      TileA::template copy<width>(a_stage(tile % kStages), p.a, p.a_ld, row0, tile * kDepth, p.m, p.k);
      TileB::template copy<width>(b_stage(tile % kStages), p.b, p.b_ld, column0, tile * kDepth, p.n, p.k);
    }
    __pipeline_commit();
  };

  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sums[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
#pragma unroll
  for (int tile = 0; tile < kStages - 1; ++tile) fetch(tile);
  for (int tile = 0; tile < tiles; ++tile) {
    __pipeline_wait_prior(kStages - 2);
    // The tile has arrived for all threads, and all have read the stage of the previous tile, which is refilled next.
    __syncthreads();
    fetch(tile + kStages - 1);
    const float* const a_tile = a_stage(tile % kStages);
    const float* const b_tile = b_stage(tile % kStages);
#pragma unroll
    for (int q = 0; q < kDepth; q += 8) {
      const auto round = [](auto& fragment) {
#pragma unroll
        for (int e = 0; e < fragment.num_elements; ++e) fragment.x[e] = wmma::__float_to_tf32(fragment.x[e]);
      };
      wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, LayoutB> right[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        wmma::load_matrix_sync(right[j], b_tile + TileB::at(x + 16 * j, q), TileB::kPitch);
        round(right[j]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, LayoutA> left;
        wmma::load_matrix_sync(left, a_tile + TileA::at(y + 16 * i, q), TileA::kPitch);
        round(left);
#pragma unroll
        for (int j = 0; j < 4; ++j) wmma::mma_sync(sums[i][j], left, right[j], sums[i][j]);
      }
    }
  }
  // C may be misaligned for fragments and end within a tile: store through shared memory.
  __pipeline_wait_prior(0);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      wmma::store_matrix_sync(shared + (y + 16 * i) * kOutputPitch + x + 16 * j, sums[i][j], kOutputPitch,
                              wmma::mem_row_major);
  __syncthreads();
  for (int number = static_cast<int>(threadIdx.x); number < kTile * kTile; number += kThreads) {
    const int row = number / kTile, column = number % kTile;
    if (row0 + row < p.m && column0 + column < p.n)
      p.c[(row0 + row) * p.c_ld + column0 + column] = shared[row * kOutputPitch + column];
  }
#endif
}

}  // namespace tf32_wmma_detail

/// c[i,j] = sum_p tf32(a[i,p]) * tf32(b[p,j]) in float32 accumulators of tensor cores (kTf32Arithmetic). Error at most
/// (2v + v²) S + growth·S, v = 2^-11, S = sum_p |a[i,p]||b[p,j]|. Throws Unavailable below compute capability 8.0.
/// Source: CUDA C++ programming guide, "Warp Matrix Functions" and "Pipeline Primitives Interface".
template <bool a_transposed, bool b_transposed>
void tf32_wmma(const Product& p, Device& device) {
  namespace detail = tf32_wmma_detail;
#if defined(__CUDACC__)
  const int capability = static_cast<CudaDevice&>(device).compute_capability();
  if (capability < 80)
    throw Unavailable("tf32_wmma", "TF32 needs compute capability 8.0; this device has " +
                                       std::to_string(capability / 10) + "." + std::to_string(capability % 10));
#endif
  constexpr std::size_t kStageFloats = detail::Tile<!a_transposed>::kFloats + detail::Tile<b_transposed>::kFloats;
  static_assert(detail::kStages * kStageFloats >= detail::kTile * detail::kOutputPitch, "C must fit into the stages");
  const LaunchShape shape{dim3(blocks_for(p.n, detail::kTile), blocks_for(p.m, detail::kTile)), dim3(detail::kThreads),
                          detail::kStages * kStageFloats * sizeof(float)};
  if (vectors(p.a, p.a_ld) && vectors(p.b, p.b_ld))
    launch(&detail::tf32_wmma_kernel<a_transposed, b_transposed, 4>, shape, device, p);
  else launch(&detail::tf32_wmma_kernel<a_transposed, b_transposed, 1>, shape, device, p);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
