// New rows of a cache of keys or values.
#include "kernels/cuda/rows.cuh"
#include "kernels/heads.hpp"
#include "ops/cache_append.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_cache_append {
namespace {

/// cache[b,lengths[b] + i,g,c] = x[b,i,g,c]. Offsets take 64 bits.
template <class S>
struct Append {
  Index batch, rows, heads, d;
  HeadRows<const S> x;
  const std::int32_t* lengths;
  HeadRows<S> cache;
};

/// A thread moves 1 element or, where all heads start at multiples of 4, 4 of them, as bits; threads in y walk heads.
template <class S, bool vectors>
__global__ void __launch_bounds__(kRowThreads) append_kernel(Append<S> a) {
  constexpr Index kWidth = vectors ? 4 : 1;
  const Index heads = a.batch * a.rows * a.heads;
  let_next_begin();
  await_previous();
  for (Index at = Index{blockIdx.x} * blockDim.y + threadIdx.y; at < heads; at += Index{gridDim.x} * blockDim.y) {
    const Index g = at % a.heads, i = at / a.heads % a.rows, b = at / a.heads / a.rows;
    const S* const from = a.x.at(b, i, g);
    S* const to = a.cache.at(b, a.lengths[b] + i, g);
    for (Index c = threadIdx.x * kWidth; c < a.d; c += blockDim.x * kWidth) {
      if constexpr (vectors) {
        if (c + 4 <= a.d) {
          *reinterpret_cast<Four<S>*>(to + c) = *reinterpret_cast<const Four<S>*>(from + c);
          continue;
        }
      }
      for (Index l = c; l < c + kWidth && l < a.d; ++l) to[l] = from[l];
    }
  }
}

template <class S>
bool heads_aligned(const HeadRows<S>& of) {
  return rows_aligned(of.data, of.per_batch) && rows_aligned(of.data, of.per_position) &&
         rows_aligned(of.data, of.per_head);
}

/// x (batch,rows,kv_heads,d), cache (batch,spare + rows,kv_heads,d): S, heads dense; lengths (batch) from 0 to spare; all
/// apart. Copies bits.
template <class S>
void run(const ops::CacheAppendArgs& args, Device& device) {
  const Append<S> a{args.batch,
                    args.rows,
                    args.kv_heads,
                    args.d,
                    head_rows<const S>(args.x),
                    args.lengths.data(),
                    head_rows<S>(args.cache)};
  const Index heads = a.batch * a.rows * a.heads;
  if (heads == 0) return;
  const bool vectors = heads_aligned(a.x) && heads_aligned(a.cache);
  const Index chunks = vectors ? (a.d + 3) / 4 : a.d;
  unsigned wide = 1;
  while (wide < 64 && wide < chunks) wide *= 2;
  const dim3 block(wide, kRowThreads / wide);
  const dim3 grid(static_cast<unsigned>(std::min<Index>((heads + block.y - 1) / block.y, Index{1} << 24)));
  launch_overlapping(vectors ? &append_kernel<S, true> : &append_kernel<S, false>, {grid, block}, device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "four elements a thread where heads are aligned",
                             .run = &run_typed<ops::CacheAppendArgs, &run<S>>});
}

const KernelRegistration registrations[] = {
    add<float>("cache_append/" ASSAY_CUDA_NAME "/vectors"),
    add<Half>("cache_append/" ASSAY_CUDA_NAME "/vectors_f16"),
    add<BFloat16>("cache_append/" ASSAY_CUDA_NAME "/vectors_bf16"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_cache_append
