// Rows of a table by index.
#include "kernels/cuda/elementwise.cuh"
#include "ops/embedding.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding {
namespace {

/// y[t,j] = table[ids[t],j]. Elements are at row * ld + j; offsets take 64 bits.
template <class S>
struct Gather {
  Index tokens, columns;
  const std::int32_t* ids;
  const S* table;
  Index table_ld;
  S* y;
  Index y_ld;
};

/// Threads in x walk columns, four each if rows are aligned; threads in y walk tokens.
template <class S, bool vectors>
__global__ void __launch_bounds__(256) gather_kernel(Gather<S> a) {
  constexpr Index kWidth = vectors ? 4 : 1;
  const Index token_step = Index{gridDim.y} * blockDim.y, column_step = Index{gridDim.x} * blockDim.x * kWidth;
  let_next_begin();
  await_previous();
  for (Index t = Index{blockIdx.y} * blockDim.y + threadIdx.y; t < a.tokens; t += token_step) {
    const Index row = a.ids[t] * a.table_ld;
    for (Index j = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth; j < a.columns; j += column_step) {
      const S* const from = a.table + row + j;
      S* const to = a.y + t * a.y_ld + j;
      if constexpr (vectors) {
        if (j + 4 <= a.columns) {
          *reinterpret_cast<Four<S>*>(to) = *reinterpret_cast<const Four<S>*>(from);
          continue;
        }
      }
      for (Index k = 0; k < kWidth && j + k < a.columns; ++k) to[k] = from[k];
    }
  }
}

/// ids (t) from 0 to v - 1; table (v,h), y (t,h) S, row-major, any leading dimension; y apart. Copies bits. 2 t h
/// elements.
template <class S>
void run(const ops::EmbeddingArgs& args, Device& device) {
  const Gather<S> a{args.t,
                    args.h,
                    args.ids.data(),
                    static_cast<const S*>(args.table.data()),
                    leading(args.table),
                    static_cast<S*>(args.y.data()),
                    leading(args.y)};
  if (a.tokens == 0 || a.columns == 0) return;
  const bool vectors = rows_aligned(a.table, a.table_ld) && rows_aligned(a.y, a.y_ld);
  const Index chunks = vectors ? (a.columns + 3) / 4 : a.columns;
  unsigned wide = 8;
  while (wide < 256 && wide < chunks) wide *= 2;
  const dim3 block(wide, 256 / wide);
  const dim3 grid(blocks_for(chunks, wide),
                  static_cast<unsigned>(std::min<Index>((a.tokens + block.y - 1) / block.y, 65535)));
  launch_overlapping(vectors ? &gather_kernel<S, true> : &gather_kernel<S, false>, {grid, block}, device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "four elements a thread where rows are aligned",
                             .run = &run_typed<ops::EmbeddingArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("embedding/" ASSAY_CUDA_NAME "/vectors"),
                                            add<Half>("embedding/" ASSAY_CUDA_NAME "/vectors_f16"),
                                            add<BFloat16>("embedding/" ASSAY_CUDA_NAME "/vectors_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding
