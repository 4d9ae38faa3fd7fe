// Strided copies: transpose and tensor_layout.
#pragma once

#include <algorithm>

#include "core/view.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// dst[i,j] = src[i,j] for an m x n matrix, each side with any strides of its own; a transpose views dst as [m,n] with
/// its strides exchanged. Copies bits, including NaN payloads. They share no memory. Offsets take 64 bits.
struct StridedCopy {
  Index m, n;
  const float* src;
  Index src_row, src_column;
  float* dst;
  Index dst_row, dst_column;
};

namespace {  // device code and its launches are local to each file

/// One thread per element; neighbouring threads follow a row of src.
__global__ void __launch_bounds__(256) elementwise_kernel(StridedCopy c) {
  const Index row_step = Index{gridDim.y} * blockDim.y;
  const Index column = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= c.n) return;
  for (Index row = Index{blockIdx.y} * blockDim.y + threadIdx.y; row < c.m; row += row_step)
    c.dst[row * c.dst_row + column * c.dst_column] = c.src[row * c.src_row + column * c.src_column];
}

/// 32x32 tiles through shared memory: reads follow rows of src, writes columns. The pad spreads a column of the tile
/// over 32 banks. Source: Ruetsch & Micikevicius, "Optimizing matrix transpose in CUDA", NVIDIA 2009.
__global__ void __launch_bounds__(256) tiled32_kernel(StridedCopy c) {
  constexpr int kTile = 32, kRows = 8;
  ASSAY_SHARED(float, tile, [kTile][kTile + 1]);
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const Index row0 = Index{blockIdx.y} * kTile, column0 = Index{blockIdx.x} * kTile;
#pragma unroll
  for (int i = 0; i < kTile; i += kRows) {
    const Index row = row0 + y + i, column = column0 + x;
    if (row < c.m && column < c.n) tile[y + i][x] = c.src[row * c.src_row + column * c.src_column];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kTile; i += kRows) {
    const Index row = row0 + x, column = column0 + y + i;
    if (row < c.m && column < c.n) c.dst[row * c.dst_row + column * c.dst_column] = tile[x][y + i];
  }
}

void elementwise(const StridedCopy& c, Device& device) {
  const dim3 grid(blocks_for(c.n, 32), static_cast<unsigned>(std::min<Index>((c.m + 7) / 8, 65535)));
  launch(&elementwise_kernel, {grid, dim3(32, 8)}, device, c);
}

void tiled32(const StridedCopy& c, Device& device) {
  launch(&tiled32_kernel, {dim3(blocks_for(c.n, 32), blocks_for(c.m, 32)), dim3(32, 8)}, device, c);
}

}  // namespace

/// dst is [n,m] if `exchanged` (a transpose).
template <class Args, bool exchanged>
StridedCopy copy_of(const Args& args) {
  const Index outer = args.dst.stride(0), inner = args.dst.stride(1);
  return {args.m,
          args.n,
          args.src.data(),
          args.src.stride(0),
          args.src.stride(1),
          args.dst.data(),
          exchanged ? inner : outer,
          exchanged ? outer : inner};
}

/// Returns the registry entry; the caller adds the differences. Args: TransposeArgs or TensorLayoutArgs. `tiled`: run
/// is tiled32.
template <class Args, bool exchanged, bool tiled, void (*run)(const StridedCopy&, Device&)>
Kernel copy_kernel(std::string_view id, std::string_view summary) {
  return {.id = id,
          .summary = summary,
          .run =
              [](const Call& call, Device& device) {
                const StridedCopy copy = copy_of<Args, exchanged>(Args::unpack(call));
                if (copy.m > 0 && copy.n > 0) run(copy, device);
              },
          .refuse = tiled ? +[](const Call& call) { return refuse_grid("m", Args::unpack(call).m, 32); } : nullptr,
          .priority = tiled ? 1 : 0,
          .automatic_above = kNeverAutomatic};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
