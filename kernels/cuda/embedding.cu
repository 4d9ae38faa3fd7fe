// Rows of a table by index.
#include "kernels/cuda/elementwise.cuh"
#include "ops/embedding.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding {
namespace {

/// y[t,j] = table[ids[t],j]. Elements are at row * ld + j; offsets take 64 bits.
struct Gather {
  Index tokens, columns;
  const std::int32_t* ids;
  const float* table;
  Index table_ld;
  float* y;
  Index y_ld;
};

/// Threads in x walk columns, 16 bytes each if rows are aligned; threads in y walk tokens.
template <bool vectors>
__global__ void __launch_bounds__(256) gather_kernel(Gather a) {
  constexpr Index kWidth = vectors ? 4 : 1;
  const Index token_step = Index{gridDim.y} * blockDim.y, column_step = Index{gridDim.x} * blockDim.x * kWidth;
  for (Index t = Index{blockIdx.y} * blockDim.y + threadIdx.y; t < a.tokens; t += token_step) {
    const Index row = a.ids[t] * a.table_ld;
    for (Index j = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth; j < a.columns; j += column_step) {
      const float* const from = a.table + row + j;
      float* const to = a.y + t * a.y_ld + j;
      if constexpr (vectors) {
        if (j + 4 <= a.columns) {
          *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
          continue;
        }
      }
      for (Index k = 0; k < kWidth && j + k < a.columns; ++k) to[k] = from[k];
    }
  }
}

/// ids (t) from 0 to v - 1; table (v,h), y (t,h) float32, row-major, any leading dimension; y apart. Copies bits. 8 t h
/// bytes.
void run(const ops::EmbeddingArgs& args, Device& device) {
  const Gather a{args.t,        args.h,         args.ids.data(), args.table.data(), leading(args.table),
                 args.y.data(), leading(args.y)};
  if (a.tokens == 0 || a.columns == 0) return;
  const bool vectors = rows_aligned(a.table, a.table_ld) && rows_aligned(a.y, a.y_ld);
  const Index chunks = vectors ? (a.columns + 3) / 4 : a.columns;
  unsigned wide = 8;
  while (wide < 256 && wide < chunks) wide *= 2;
  const dim3 block(wide, 256 / wide);
  const dim3 grid(blocks_for(chunks, wide),
                  static_cast<unsigned>(std::min<Index>((a.tokens + block.y - 1) / block.y, 65535)));
  launch(vectors ? &gather_kernel<true> : &gather_kernel<false>, {grid, block}, device, a);
}

const KernelRegistration vectors_kernel{{.id = "embedding/" ASSAY_CUDA_NAME "/vectors",
                                         .arithmetic = {.functions = FunctionLibrary::cuda},
                                         .summary = "a thread per 16 bytes where rows are aligned",
                                         .run = &run_typed<ops::EmbeddingArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding
