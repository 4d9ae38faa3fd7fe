// The gradient of rows of a table by index.
#include "kernels/cuda/elementwise.cuh"
#include "ops/embedding_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding_backward {
namespace {

/// dtable[v,j] = sum over t with ids[t] = v of dy[t,j]. Elements are at row * ld + j; offsets take 64 bits.
template <class S>
struct ScatterSum {
  Index tokens, vocabulary, columns;
  const std::int32_t* ids;
  const S* dy;
  Index dy_ld;
  float* dtable;
  Index dtable_ld;
};

/// Clears the table; scatter_kernel then writes the rows of tokens.
template <class S, bool vectors>
__global__ void __launch_bounds__(256) zero_kernel(ScatterSum<S> a) {
  constexpr Index kWidth = vectors ? 4 : 1;
  const Index row_step = Index{gridDim.y} * blockDim.y, column_step = Index{gridDim.x} * blockDim.x * kWidth;
  for (Index v = Index{blockIdx.y} * blockDim.y + threadIdx.y; v < a.vocabulary; v += row_step)
    for (Index j = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth; j < a.columns; j += column_step) {
      float* const to = a.dtable + v * a.dtable_ld + j;
      if constexpr (vectors) {
        if (j + 4 <= a.columns) {
          *reinterpret_cast<float4*>(to) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
          continue;
        }
      }
      for (Index k = 0; k < kWidth && j + k < a.columns; ++k) to[k] = 0.0f;
    }
}

/// A warp owns a token and 32 or 128 columns. The warp of the first token of an id sums all tokens of that id in order,
/// so that no two warps write the same element. The warp compares 32 ids at a time.
template <class S, bool vectors>
__global__ void __launch_bounds__(256) scatter_kernel(ScatterSum<S> a) {
  constexpr unsigned kAll = 0xffffffffU;
  constexpr int kWidth = vectors ? 4 : 1;
  const Index chunks = (a.columns + 32 * kWidth - 1) / (32 * kWidth);
  const Index warp = (Index{blockIdx.x} * blockDim.x + threadIdx.x) / 32, token = warp / chunks;
  if (token >= a.tokens) return;  // the whole warp
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int32_t id = a.ids[token];
  for (Index u = lane; u - lane < token; u += 32)
    if (__any_sync(kAll, u < token && a.ids[u] == id)) return;  // the whole warp: not the first of its id
  const Index column = warp % chunks * 32 * kWidth + lane * kWidth;
  const int width = static_cast<int>(max(Index{0}, min(Index{kWidth}, a.columns - column)));
  float sum[kWidth] = {};
  for (Index u = token / 32 * 32 + lane; u - lane < a.tokens; u += 32) {
    unsigned matches = __ballot_sync(kAll, u >= token && u < a.tokens && a.ids[u] == id);
    while (matches != 0) {
      const S* const dy = a.dy + (u - lane + __ffs(static_cast<int>(matches)) - 1) * a.dy_ld + column;
      matches &= matches - 1;
      if constexpr (vectors) {
        if (width == 4) {
          const float4 x = load4<S>(dy, 0, 4, true);
          sum[0] += x.x, sum[1] += x.y, sum[2] += x.z, sum[3] += x.w;
          continue;
        }
      }
      for (int k = 0; k < width; ++k) sum[k] += load(dy[k]);
    }
  }
  float* const to = a.dtable + id * a.dtable_ld + column;
  for (int k = 0; k < width; ++k) to[k] = sum[k];
}

/// ids (t) from 0 to v - 1; dy (t,h), dtable (v,h) S, row-major, any leading dimension; dtable apart. 4 v h + 8 t
/// h bytes, and t / 32 comparisons of 32 ids for each token and 128 columns. Error at most k·u·sum |dy[t,j]| for k
/// tokens of an id.
template <class S>
void run(const ops::EmbeddingBackwardArgs& args, Device& device) {
  const ScatterSum<S> a{args.t,
                        args.v,
                        args.h,
                        args.ids.data(),
                        static_cast<const S*>(args.dy.data()),
                        leading(args.dy),
                        args.dtable.data(),
                        leading(args.dtable)};
  if (a.columns == 0) return;
  const bool vectors = rows_aligned(a.dy, a.dy_ld) && rows_aligned(a.dtable, a.dtable_ld);
  const Index width = vectors ? 4 : 1, chunks = (a.columns + width - 1) / width;
  unsigned wide = 8;
  while (wide < 256 && wide < chunks) wide *= 2;
  const dim3 block(wide, 256 / wide);
  const dim3 grid(blocks_for(chunks, wide),
                  static_cast<unsigned>(std::min<Index>((a.vocabulary + block.y - 1) / block.y, 65535)));
  launch(vectors ? &zero_kernel<S, true> : &zero_kernel<S, false>, {grid, block}, device, a);
  if (a.tokens == 0) return;
  const Index warps = a.tokens * ((a.columns + 32 * width - 1) / (32 * width));
  launch(vectors ? &scatter_kernel<S, true> : &scatter_kernel<S, false>, {dim3(blocks_for(warps, 8)), dim3(256)},
         device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::cuda},
       .storage = dtype_of<S>,
       .summary = "the first token of an id sums them all in order, 32 ids compared at a time; no atomics",
       .run = &run_typed<ops::EmbeddingBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("embedding_backward/" ASSAY_CUDA_NAME "/first_of_id"),
                                            add<Half>("embedding_backward/" ASSAY_CUDA_NAME "/first_of_id_f16"),
                                            add<BFloat16>("embedding_backward/" ASSAY_CUDA_NAME "/first_of_id_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_embedding_backward
