// Rows of a table by index, in packs of 16 bytes.
#include "kernels/cuda/packs.cuh"
#include "ops/embedding.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding {
namespace {

constexpr int kPacksInFlight = 4;  ///< of a row that a thread loads together

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

/// Blocks in x and threads in y walk tokens; blocks in y and threads in x walk columns.
template <class S, bool whole>
__global__ void __launch_bounds__(kRowThreads) gather_kernel(Gather<S> a) {
  const int n = static_cast<int>(a.columns), step = static_cast<int>(blockDim.x) * kPack<S>;
  const int first = static_cast<int>(blockIdx.y) * kPacksInFlight * step + static_cast<int>(threadIdx.x) * kPack<S>;
  const Index t = Index{blockIdx.x} * blockDim.y + threadIdx.y;
  let_next_begin();
  await_previous();
  if (t >= a.tokens) return;
  const S* const from = a.table + a.ids[t] * a.table_ld;
  S* const to = a.y + t * a.y_ld;
  Pack<S> held[kPacksInFlight];
#pragma unroll
  for (int i = 0; i < kPacksInFlight; ++i) held[i] = load_pack<whole>(from, first + i * step, n);
#pragma unroll
  for (int i = 0; i < kPacksInFlight; ++i) store_bits<whole>(to, first + i * step, n, held[i]);
}

/// ids (t) from 0 to v - 1; table (v,h), y (t,h) S, row-major, any leading dimension; y apart. Copies bits. 2 t h
/// elements.
template <class S>
void run(const ops::EmbeddingArgs& args, Device& device) {
  const Gather<S> a{args.t,
                    args.h,
                    args.ids.data(),
                    static_cast<const S*>(args.table.data()),
                    row_stride(args.table),
                    static_cast<S*>(args.y.data()),
                    row_stride(args.y)};
  if (a.tokens == 0 || a.columns == 0) return;
  unsigned wide = 8;
  while (wide < kRowThreads && Index{wide} * kPacksInFlight * kPack<S> < a.columns) wide *= 2;
  const dim3 block(wide, kRowThreads / wide);
  const dim3 grid(blocks_for(a.tokens, block.y), blocks_for(a.columns, Index{wide} * kPacksInFlight * kPack<S>));
  const bool whole = packed(a.table, a.table_ld, a.columns) && packed(a.y, a.y_ld, a.columns);
  launch_overlapping(whole ? &gather_kernel<S, true> : &gather_kernel<S, false>, {grid, block}, device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "four packs of 16 bytes a thread, where rows are aligned",
                             .run = &run_typed<ops::EmbeddingArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("embedding/" ASSAY_CUDA_NAME "/vectors"),
                                            add<Half>("embedding/" ASSAY_CUDA_NAME "/vectors_f16"),
                                            add<BFloat16>("embedding/" ASSAY_CUDA_NAME "/vectors_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding
