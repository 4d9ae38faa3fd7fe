// One output per thread, 16x16 tiles in shared memory.
#pragma once

#include "kernels/cuda/product.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline constexpr std::string_view kNaive16 = "one output per thread, 16x16 tiles in shared memory";

/// x rounded to bfloat16, to nearest even.
__device__ inline float rounded_to_bf16(float x) {
  const unsigned bits = __float_as_uint(x);
  return __uint_as_float((bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U);
}

/// c[i,j] = epilogue(sum_p a[i,p] * b[p,j]), p ascending, one fused multiply-add a term. A block of 16x16 threads computes 16x16
/// outputs, and reads A and B along their rows whichever way they lie. Error at most k·u·sum_p |a[i,p]||b[p,j]|.
/// Source: CUDA C++ programming guide, "Shared Memory".
template <bool a_transposed, bool b_transposed, ProductFault fault, class Epilogue>
__global__ void __launch_bounds__(256) naive16_kernel(Product p, Epilogue epilogue) {
  constexpr int kTile = 16;
  ASSAY_SHARED(float, a_tile, [kTile][kTile + 1]);  // [row][p]
  ASSAY_SHARED(float, b_tile, [kTile][kTile + 1]);  // [p][column]
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row0 = static_cast<int>(blockIdx.y) * kTile, column0 = static_cast<int>(blockIdx.x) * kTile;
  const int row = row0 + y, column = column0 + x;
  const int k_limit = fault == ProductFault::k_not_predicated ? (p.k + kTile - 1) / kTile * kTile : p.k;
  if constexpr (fault == ProductFault::width_as_stride) {
    p.a_ld = a_transposed ? p.m : p.k;
    p.b_ld = b_transposed ? p.k : p.n;
  }
  if constexpr (fault == ProductFault::return_before_barrier)
    if (row >= p.m || column >= p.n) return;

  float sum = fault == ProductFault::stale_sum ? a_tile[y][x] : 0.0f;
  for (int k0 = 0; k0 < p.k; k0 += kTile) {
    const int b_k0 = fault == ProductFault::tile_reused && k0 > kTile ? k0 - kTile : k0;
    if constexpr (a_transposed) a_tile[x][y] = element_or_zero(p.a, p.a_ld, k0 + y, row0 + x, k_limit, p.m);
    else a_tile[y][x] = element_or_zero(p.a, p.a_ld, row, k0 + x, p.m, k_limit);
    if constexpr (b_transposed) b_tile[x][y] = element_or_zero(p.b, p.b_ld, column0 + y, b_k0 + x, p.n, k_limit);
    else b_tile[y][x] = element_or_zero(p.b, p.b_ld, b_k0 + y, column, k_limit, p.n);
    if constexpr (fault != ProductFault::no_barrier_after_store) __syncthreads();
#pragma unroll
    for (int q = 0; q < kTile; ++q) {
      // gridDim.z is 1, which the compiler cannot know: it would take the fault for undefined behaviour.
      const int at = fault == ProductFault::tile_off_by_one ? q + static_cast<int>(gridDim.z) : q;
      sum += a_tile[y][q] * b_tile[at][x];
      if constexpr (fault == ProductFault::bf16_sum) sum = rounded_to_bf16(sum);
    }
    if constexpr (fault != ProductFault::no_barrier_after_use) __syncthreads();
  }
  if (fault == ProductFault::store_not_predicated || (row < p.m && column < p.n))
    p.c[row * p.c_ld + column] = epilogue(sum, row, column);
}

template <bool a_transposed, bool b_transposed, ProductFault fault, class Epilogue>
void naive16_with(const Product& p, const Epilogue& epilogue, Device& device) {
  dim3 grid(blocks_for(p.n, 16), blocks_for(p.m, 16));
  if constexpr (fault == ProductFault::grid_swapped) grid = dim3(grid.y, grid.x);
  if constexpr (fault == ProductFault::one_row_of_blocks) grid.y = 1;
  if constexpr (fault == ProductFault::grid_of_first_call) {
    static const dim3 first = grid;
    grid = first;
  }
  launch(&naive16_kernel<a_transposed, b_transposed, fault, Epilogue>, {grid, dim3(16, 16)}, device, p, epilogue);
}

template <bool a_transposed, bool b_transposed, ProductFault fault = ProductFault::none>
void naive16(const Product& p, Device& device) {
  naive16_with<a_transposed, b_transposed, fault>(p, Plain{}, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
