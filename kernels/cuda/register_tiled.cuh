// 128x128 outputs a block, 8x8 of them in the registers of each of its 256 threads; two stages of shared memory.
#pragma once

#include "kernels/cuda/product.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline constexpr std::string_view kRegisterTiled =
    "128x128 block, 8x8 outputs in registers, depth 8, double-buffered, vector loads where aligned; long sums of few columns in parts";

namespace register_tiled_detail {

constexpr int kTile = 128, kDepth = 8;
/// Pitch of a row of a tile. The pad puts the transposing stores of a warp in different banks, and aligns rows to 16
/// bytes.
constexpr int kPitch = kTile + 4;

/// Four elements of 16 bits.
template <class S>
struct alignas(8) Quad {
  S at[4];
};
/// A member named `load` hides the function of storage.cuh.
template <class S>
__device__ inline float widened(S x) {
  return load(x);
}
__device__ inline float4 widened4(const float* from) { return *reinterpret_cast<const float4*>(from); }
template <class S>
__device__ inline float4 widened4(const S* from) {
  const Quad<S> v = *reinterpret_cast<const Quad<S>*>(from);
  return make_float4(load(v.at[0]), load(v.at[1]), load(v.at[2]), load(v.at[3]));
}

/// Moves one operand into shared memory, laid out as [depth][kPitch]. The matrix has k along its rows (k_inner:
/// [extent, k]) or across them ([k, extent]). A thread moves four neighbours of a row, widened from S; `aligned`: as
/// one vector.
template <bool k_inner, bool aligned, class S = float>
struct Operand {
  const S* at;      ///< address of the next four
  Index step;       ///< distance between tiles
  int row, column;  ///< position of the four in the tile, as the matrix is laid out
  int inside;       ///< number of elements of a row of the tile within `extent`; with k_inner, 0 for rows outside

  __device__ Operand(const S* matrix, Index ld, int extent, int first) {
    constexpr int kVectorsPerRow = (k_inner ? kDepth : kTile) / 4;
    row = static_cast<int>(threadIdx.x) / kVectorsPerRow;
    column = static_cast<int>(threadIdx.x) % kVectorsPerRow * 4;
    at = matrix + (k_inner ? (first + row) * ld + column : row * ld + first + column);
    step = k_inner ? kDepth : kDepth * ld;
    inside = k_inner ? (first + row < extent ? kDepth : 0) : extent - first;
  }
  /// Returns the next four, with zeros outside; `k_left` is the rest of k.
  __device__ float4 load(int k_left) {
    const int rows = k_inner ? kTile : k_left, columns = k_inner ? min(inside, k_left) : inside;
    const int valid = row < rows ? columns - column : 0;
    const S* const from = at;
    at += step;
    if (aligned && valid >= 4) return widened4(from);
    return make_float4(valid > 0 ? widened(from[0]) : 0.0f, valid > 1 ? widened(from[1]) : 0.0f,
                       valid > 2 ? widened(from[2]) : 0.0f, valid > 3 ? widened(from[3]) : 0.0f);
  }
  __device__ void store(float (*tile)[kPitch], float4 v) const {
    if constexpr (k_inner) {
      tile[column][row] = v.x;
      tile[column + 1][row] = v.y;
      tile[column + 2][row] = v.z;
      tile[column + 3][row] = v.w;
    } else {
      *reinterpret_cast<float4*>(&tile[row][column]) = v;
    }
  }
};

/// Loads eight elements of a row of a tile: four at `at`, four at `at + step`.
__device__ inline void load8(float (&v)[8], const float* row, int at, int step) {
  const float4 low = *reinterpret_cast<const float4*>(row + at);
  const float4 high = *reinterpret_cast<const float4*>(row + at + step);
  v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
  v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
}

/// Stores sums v to those of the elements (row, column..column+3) of C that exist.
template <bool aligned, class P, class Epilogue>
__device__ inline void store4(const P& p, const Epilogue& epilogue, int row, int column, const float* v) {
  if (row >= p.m) return;
  float* at = p.c + row * p.c_ld + column;
  if (aligned && column + 4 <= p.n) {
    *reinterpret_cast<float4*>(at) = epilogue(make_float4(v[0], v[1], v[2], v[3]), row, column);
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (column + j < p.n) at[j] = epilogue(v[j], row, column + j);
}

/// Computes C from operands that load and store as Operand does; `p` gives the extents and C.
///
/// Warps form a 4x2 grid on the block, 32x64 outputs each; lanes form a 4x8 grid on the warp. A thread owns rows
/// 4y..4y+3 and 16+4y.., columns 4x..4x+3 and 32+4x.. of its warp's outputs, so that a warp reads 64 and 128 contiguous
/// bytes of a tile's row.
template <bool aligned, class P, class A, class B, class Epilogue = Plain>
__device__ inline void register_tiled_block(const P& p, A a, B b, const Epilogue& epilogue = {}) {
  ASSAY_SHARED(__align__(16) float, a_tile, [2][kDepth][kPitch]);
  ASSAY_SHARED(__align__(16) float, b_tile, [2][kDepth][kPitch]);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int y = warp / 2 * 32 + lane / 8 * 4, x = warp % 2 * 64 + lane % 8 * 4;
  const int row0 = static_cast<int>(blockIdx.y) * kTile, column0 = static_cast<int>(blockIdx.x) * kTile;

  float sums[8][8] = {};
  a.store(a_tile[0], a.load(p.k));
  b.store(b_tile[0], b.load(p.k));
  __syncthreads();
  int stage = 0;
  for (int k_left = p.k; k_left > 0; k_left -= kDepth) {
    const float4 next_a = a.load(k_left - kDepth), next_b = b.load(k_left - kDepth);  // zeros past the end
#pragma unroll
    for (int q = 0; q < kDepth; ++q) {
      float left[8], right[8];
      load8(left, a_tile[stage][q], y, 16);
      load8(right, b_tile[stage][q], x, 32);
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] += left[i] * right[j];
    }
    stage ^= 1;
    // The barrier that ended the previous iteration follows the last read of the other stage.
    a.store(a_tile[stage], next_a);
    b.store(b_tile[stage], next_b);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = row0 + y + i % 4 + i / 4 * 16;
    store4<aligned>(p, epilogue, row, column0 + x, sums[i]);
    store4<aligned>(p, epilogue, row, column0 + x + 32, sums[i] + 4);
  }
}

/// Block z computes the sum over its `terms` of k, as matrix z of c; matrices are `part` elements apart.
template <bool a_transposed, bool b_transposed, bool aligned, class S, class SB, class Epilogue>
__global__ void __launch_bounds__(256, 2)
    register_tiled_kernel(ProductOf<S, float, SB> p, int terms, Index part, Epilogue epilogue) {
  const int row0 = static_cast<int>(blockIdx.y) * kTile, column0 = static_cast<int>(blockIdx.x) * kTile;
  const int first = static_cast<int>(blockIdx.z) * terms;
  p.a += a_transposed ? first * p.a_ld : first;
  p.b += b_transposed ? first : first * p.b_ld;
  p.c += blockIdx.z * part;
  p.k = min(terms, p.k - first);
  register_tiled_block<aligned>(p, Operand<!a_transposed, aligned, S>(p.a, p.a_ld, p.m, row0),
                                Operand<b_transposed, aligned, SB>(p.b, p.b_ld, p.n, column0), epilogue);
}

/// Adds the parts of a product in order. A thread owns four neighbours of a row of C.
template <bool aligned, class P, class Epilogue>
__global__ void __launch_bounds__(256)
    add_parts_kernel(P p, const float* parts, Index ld, Index part, int count, Epilogue epilogue) {
  const Index quads = (p.n + 3) / 4, quad = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  const int row = static_cast<int>(quad / quads), column = static_cast<int>(quad % quads) * 4;
  if (row >= p.m) return;
  const float* const from = parts + row * ld + column;
  float4 sum = *reinterpret_cast<const float4*>(from);
  for (int z = 1; z < count; ++z) {
    const float4 v = *reinterpret_cast<const float4*>(from + z * part);
    sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
  }
  const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
  store4<aligned>(p, epilogue, row, column, sums);
}

/// Estimated microseconds of k terms in `parts` parts: 132 multiprocessors take two blocks each, one block alone runs at
/// 0.7 of the speed of two, a term takes 0.177 us, and parts pass through memory once more.
inline double estimated_us(Index tiles, Index k, int parts) {
  constexpr Index kBlocks = 264;
  const Index blocks = tiles * parts, rest = blocks % kBlocks;
  const double waves = static_cast<double>(blocks / kBlocks) + (rest == 0 ? 0 : 2 * rest <= kBlocks ? 0.71 : 1);
  const double adding = parts == 1 ? 0 : 4 + (parts + 1) * 0.022 * static_cast<double>(tiles);
  return waves * 0.177 * static_cast<double>(k) / parts + adding;
}

/// Returns the number of terms of each part of a sum, a multiple of kDepth if there are several. It depends on k and n
/// alone, as for 1024 rows, so that the bits of a row depend on no other row.
inline int terms_of_part(Index k, Index n) {
  constexpr int kMostParts = 16, kLeastTerms = 128;
  const Index tiles = 8 * ((n + kTile - 1) / kTile);
  double least = estimated_us(tiles, k, 1);
  for (int parts = 2; parts <= kMostParts && k >= Index{kLeastTerms} * parts; ++parts)
    least = std::min(least, estimated_us(tiles, k, parts));
  int parts = 1;
  while (estimated_us(tiles, k, parts) > 1.1 * least) ++parts;
  const auto terms = static_cast<int>((k + parts - 1) / parts);
  return parts == 1 ? terms : (terms + kDepth - 1) / kDepth * kDepth;
}

}  // namespace register_tiled_detail

/// c[i,j] = epilogue(sum_p a[i,p] * b[p,j]) in float32, A and B widened, one fused multiply-add a term, p ascending in
/// each part of the sum, and parts in order. Few columns and many terms give several parts: else most multiprocessors
/// would have no tile. Error at most k·u·sum_p |a[i,p]||b[p,j]|. Reads each element of A n/128 times and of B m/128
/// times. Allocates scratch for the parts of 2048 rows; the device frees it after use. Source: Volkov & Demmel,
/// "Benchmarking GPUs to tune dense linear algebra", SC 2008 (register blocking); NVIDIA, "CUTLASS: Fast linear algebra
/// in CUDA C++" (thread layout).
template <bool a_transposed, bool b_transposed, class S, class SB, class Epilogue>
void register_tiled_with(const ProductOf<S, float, SB>& p, const Epilogue& epilogue, Device& device) {
  namespace detail = register_tiled_detail;
  using Matrices = ProductOf<S, float, SB>;
  const bool loads = vectors(p.a, p.a_ld) && vectors(p.b, p.b_ld), stores = vectors(p.c, p.c_ld) && vectors(epilogue);
  const int terms = detail::terms_of_part(p.k, p.n);
  const dim3 tiles(blocks_for(p.n, detail::kTile), blocks_for(p.m, detail::kTile));
  if (terms == p.k)
    return launch(loads && stores ? &detail::register_tiled_kernel<a_transposed, b_transposed, true, S, SB, Epilogue>
                                  : &detail::register_tiled_kernel<a_transposed, b_transposed, false, S, SB, Epilogue>,
                  {tiles, dim3(256)}, device, p, terms, Index{0}, epilogue);
  constexpr int kRows = 2048;
  const Index ld = (Index{p.n} + 3) / 4 * 4, part = std::min(p.m, kRows) * ld;
  const unsigned parts = blocks_for(p.k, terms);
  const Buffer scratch = device.allocate(static_cast<std::size_t>(parts * part) * sizeof(float));
  for (int first = 0; first < p.m; first += kRows) {
    Matrices rows = p, sums = p;
    rows.m = sums.m = std::min(kRows, p.m - first);
    sums.a += a_transposed ? first : first * p.a_ld;
    sums.c = static_cast<float*>(scratch.address());
    sums.c_ld = ld;
    rows.c += first * p.c_ld;
    Epilogue of_rows = epilogue;
    of_rows.skip_rows(first);
    launch(loads ? &detail::register_tiled_kernel<a_transposed, b_transposed, true, S, SB, Plain>
                 : &detail::register_tiled_kernel<a_transposed, b_transposed, false, S, SB, Plain>,
           {dim3(tiles.x, blocks_for(rows.m, detail::kTile), parts), dim3(256)}, device, sums, terms, part, Plain{});
    launch(stores ? &detail::add_parts_kernel<true, Matrices, Epilogue>
                  : &detail::add_parts_kernel<false, Matrices, Epilogue>,
           {dim3(blocks_for(rows.m * (ld / 4), 256)), dim3(256)}, device, rows,
           static_cast<const float*>(scratch.address()), ld, part, static_cast<int>(parts), of_rows);
  }
}

template <bool a_transposed, bool b_transposed>
void register_tiled(const Product& p, Device& device) {
  register_tiled_with<a_transposed, b_transposed>(p, Plain{}, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
