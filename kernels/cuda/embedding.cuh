// Rows of a table by index.
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "ops/embedding.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// y[t,j] = table[ids[t],j]. Elements lie at row * ld + j; offsets take 64 bits.
struct Gather {
  Index tokens, vocabulary, columns;
  const std::int32_t* ids;
  const float* table;
  Index table_ld;
  float* y;
  Index y_ld;
};

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class GatherFault { none, first_token_only, tail_unwritten, offset_of_32_bits, copied_as_sum, last_row_clamped };

/// Threads along x walk columns, 16 bytes each where rows are aligned; along y tokens.
template <bool vectors, GatherFault fault>
__global__ void __launch_bounds__(256) gather_kernel(Gather a) {
  constexpr Index kWidth = vectors ? 4 : 1;
  const Index columns = fault == GatherFault::tail_unwritten ? a.columns / 4 * 4 : a.columns;
  const Index tokens = fault == GatherFault::first_token_only ? 1 : a.tokens;
  const Index token_step = Index{gridDim.y} * blockDim.y, column_step = Index{gridDim.x} * blockDim.x * kWidth;
  for (Index t = Index{blockIdx.y} * blockDim.y + threadIdx.y; t < tokens; t += token_step) {
    Index id = a.ids[t];
    if (fault == GatherFault::last_row_clamped) id = min(id, max(a.vocabulary - 2, Index{0}));
    Index row = id * a.table_ld;
    if (fault == GatherFault::offset_of_32_bits) row &= 0xfff;  // a product that wraps, at a size that a test can hold
    for (Index j = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth; j < columns; j += column_step) {
      const float* const from = a.table + row + j;
      float* const to = a.y + t * a.y_ld + j;
      if constexpr (vectors) {
        if (j + 4 <= columns) {
          *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
          continue;
        }
      }
      for (Index k = 0; k < kWidth && j + k < columns; ++k)
        to[k] = fault == GatherFault::copied_as_sum ? from[k] + 0.0f : from[k];
    }
  }
}

/// ids (t) from 0 to v - 1; table (v,h), y (t,h) float32, row-major, any leading dimension; y apart. Bits are copied. 8
/// t h bytes.
template <GatherFault fault = GatherFault::none>
void embedding(const ops::EmbeddingArgs& args, Device& device) {
  const Gather a{args.t,        args.v,         args.h, args.ids.data(), args.table.data(), leading(args.table),
                 args.y.data(), leading(args.y)};
  if (a.tokens == 0 || a.columns == 0) return;
  const bool vectors =
      fault != GatherFault::copied_as_sum && rows_aligned(a.table, a.table_ld) && rows_aligned(a.y, a.y_ld);
  const Index chunks = vectors ? (a.columns + 3) / 4 : a.columns;
  unsigned wide = 8;
  while (wide < 256 && wide < chunks) wide *= 2;
  const dim3 block(wide, 256 / wide);
  const dim3 grid(blocks_for(chunks, wide),
                  static_cast<unsigned>(std::min<Index>((a.tokens + block.y - 1) / block.y, 65535)));
  launch(vectors ? &gather_kernel<true, fault> : &gather_kernel<false, fault>, {grid, block}, device, a);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
