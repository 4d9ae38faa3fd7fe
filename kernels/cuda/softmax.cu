// Softmax of rows, a warp or a block per row, which registers hold; what they do not hold is read once for the maximum
// and the sum, and again for the result.
#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/packs.cuh"
#include "ops/softmax.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax {
namespace {

/// y[i,j] = exp(x[i,j] - m) / sum_k exp(x[i,k] - m), m = max_k x[i,k]; zeros if all of a row is -inf. x, y (rows,n):
/// S, rows dense; they share no memory. Offsets take 64 bits. Where registers do not hold the row, a thread rescales its
/// sum of the rest when its maximum grows (Milakov & Gimelshein, arXiv:1805.02867): at most once per 4096 entries of the
/// row, and once more for the row's maximum.
template <class S>
struct Softmax {
  Index rows, n;
  const S* x;
  Index x_ld;
  S* y;
  Index y_ld;
};

constexpr int kLongRow = 1024;  ///< most threads of a block that has one row
constexpr int kHeld = 4;        ///< packs of a row that a thread keeps in registers

template <class S>
__device__ inline float largest_of(const Elements<S>& v, float largest) {
#pragma unroll
  for (int e = 0; e < kPack<S>; ++e) largest = fmaxf(largest, v.at[e]);
  return largest;
}

template <class S>
__device__ inline Elements<S> scaled(Elements<S> v, float scale) {
#pragma unroll
  for (int e = 0; e < kPack<S>; ++e) v.at[e] *= scale;
  return v;
}

template <class S, int threads, bool whole>
__global__ void __launch_bounds__(threads == 32 ? kRowThreads : threads) softmax_kernel(Softmax<S> a) {
  ASSAY_SHARED(float, scratch, [kLongRow / 32]);
  const Team<threads> team;
  const Index row = team.number;
  if (row >= a.rows) return;  // whole warps, or no thread of the block
  const int n = static_cast<int>(a.n), first = kPack<S> * team.place, step = kPack<S> * team.size,
            rest = first + kHeld * step;
  const S* const x = a.x + row * a.x_ld;
  S none;
  store(none, -INFINITY);
  Elements<S> held[kHeld];
#pragma unroll
  for (int h = 0; h < kHeld; ++h) held[h] = widened(load_pack<whole>(x, first + h * step, n, none));
  float own = -INFINITY, sum = 0.0f;  // a NaN reaches the sum, not the maximum
#pragma unroll
  for (int h = 0; h < kHeld; ++h) own = largest_of(held[h], own);
  for (int j = rest; j < n; j += step) {
    const Elements<S> v = widened(load_pack<whole>(x, j, n, none));
    const float grown = largest_of(v, own);
    const float shift = grown == -INFINITY ? 0.0f : grown;  // -inf only so far: the sum stays 0, or NaN after a NaN
    if (own < grown && own > -INFINITY) sum *= expf(own - grown);
#pragma unroll
    for (int e = 0; e < kPack<S>; ++e) sum += expf(v.at[e] - shift);
    own = grown;
  }
  const float largest = reduce_row<threads, Max>(own, scratch);
  const float shift = largest == -INFINITY ? 0.0f : largest;
  if (own < largest && own > -INFINITY) sum *= expf(own - largest);
#pragma unroll
  for (int h = 0; h < kHeld; ++h)
#pragma unroll
    for (int e = 0; e < kPack<S>; ++e) sum += held[h].at[e] = expf(held[h].at[e] - shift);
  sum = reduce_row<threads, Plus>(sum, scratch);
  const float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
  S* const y = a.y + row * a.y_ld;
#pragma unroll
  for (int h = 0; h < kHeld; ++h) store_pack<whole>(y, first + h * step, n, scaled(held[h], scale));
  for (int j = rest; j < n; j += step) {
    Elements<S> v = widened(load_pack<whole>(x, j, n));
#pragma unroll
    for (int e = 0; e < kPack<S>; ++e) v.at[e] = expf(v.at[e] - shift);
    store_pack<whole>(y, j, n, scaled(v, scale));
  }
}

/// A warp a row that its registers hold, else a block with as many warps as hold the row.
template <class S, bool whole>
void launch_softmax(const Softmax<S>& a, Device& device) {
  constexpr Index kOfWarp = 32 * kHeld * kPack<S>;
  const dim3 threads(static_cast<unsigned>(std::min<Index>(kLongRow, (a.n + kOfWarp - 1) / kOfWarp * 32)));
  if (a.n <= kOfWarp)
    launch(&softmax_kernel<S, 32, whole>, {dim3(blocks_for(a.rows, kRowThreads / 32)), dim3(kRowThreads)}, device, a);
  else launch(&softmax_kernel<S, kLongRow, whole>, {dim3(static_cast<unsigned>(a.rows)), threads}, device, a);
}

template <class S>
void run(const ops::SoftmaxArgs& args, Device& device) {
  if (args.rows == 0) return;
  const Softmax<S> a{args.rows,
                     args.n,
                     static_cast<const S*>(args.x.data()),
                     row_stride(args.x),
                     static_cast<S*>(args.y.data()),
                     row_stride(args.y)};
  if (packed(a.x, a.x_ld, a.n) && packed(a.y, a.y_ld, a.n)) launch_softmax<S, true>(a, device);
  else launch_softmax<S, false>(a, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::cuda, .online_tile = 4096},
       .storage = dtype_of<S>,
       .summary =
           "a warp or a block a row, which registers hold; the rest of a long row in one pass for maximum and sum",
       .run = &run_typed<ops::SoftmaxArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("softmax/" ASSAY_CUDA_NAME "/online"),
                                            add<Half>("softmax/" ASSAY_CUDA_NAME "/online_f16"),
                                            add<BFloat16>("softmax/" ASSAY_CUDA_NAME "/online_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax
