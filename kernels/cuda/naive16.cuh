// One output per thread, 16x16 tiles in shared memory.
#pragma once

#include "kernels/cuda/product.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline constexpr std::string_view kNaive16 = "one output per thread, 16x16 tiles in shared memory";

/// c[i,j] = epilogue(sum_p a[i,p] * b[p,j]), p ascending, one fused multiply-add a term, rounded once to Out. 16x16
/// threads compute 16x16 outputs, and read A and B along their rows, transposed or not. Error at most k·u·sum_p
/// |a[i,p]||b[p,j]|, and half a unit of Out.
/// Source: CUDA C++ programming guide, "Shared Memory".
template <bool a_transposed, bool b_transposed, class S, class Out, class SB, class Epilogue>
__global__ void __launch_bounds__(256) naive16_kernel(ProductOf<S, Out, SB> p, Epilogue epilogue) {
  constexpr int kTile = 16;
  ASSAY_SHARED(float, a_tile, [kTile][kTile + 1]);  // [row][p]
  ASSAY_SHARED(float, b_tile, [kTile][kTile + 1]);  // [p][column]
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row0 = static_cast<int>(blockIdx.y) * kTile, column0 = static_cast<int>(blockIdx.x) * kTile;
  const int row = row0 + y, column = column0 + x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < p.k; k0 += kTile) {
    if constexpr (a_transposed) a_tile[x][y] = element_or_zero(p.a, p.a_ld, k0 + y, row0 + x, p.k, p.m);
    else a_tile[y][x] = element_or_zero(p.a, p.a_ld, row, k0 + x, p.m, p.k);
    if constexpr (b_transposed) b_tile[x][y] = element_or_zero(p.b, p.b_ld, column0 + y, k0 + x, p.n, p.k);
    else b_tile[y][x] = element_or_zero(p.b, p.b_ld, k0 + y, column, p.k, p.n);
    __syncthreads();
#pragma unroll
    for (int q = 0; q < kTile; ++q) sum += a_tile[y][q] * b_tile[q][x];
    __syncthreads();  // before the next tiles overwrite these
  }
  if (row < p.m && column < p.n) store(p.c[row * p.c_ld + column], epilogue(sum, row, column));
}

template <bool a_transposed, bool b_transposed, class S, class Out, class SB, class Epilogue>
void naive16_with(const ProductOf<S, Out, SB>& p, const Epilogue& epilogue, Device& device) {
  const dim3 grid(blocks_for(p.n, 16), blocks_for(p.m, 16));
  launch(&naive16_kernel<a_transposed, b_transposed, S, Out, SB, Epilogue>, {grid, dim3(16, 16)}, device, p, epilogue);
}

template <bool a_transposed, bool b_transposed, class S = float, class Out = S>
void naive16(const ProductOf<S, Out>& p, Device& device) {
  naive16_with<a_transposed, b_transposed>(p, Plain{}, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
