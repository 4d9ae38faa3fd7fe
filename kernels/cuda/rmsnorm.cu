// Root mean square normalization with CUDA, a warp or a block a row.
#include "kernels/cuda/packs.cuh"
#include "ops/rmsnorm.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm {
namespace {

/// rrms[i] = 1 / sqrt(sum_j x[i,j]² / n + eps), y[i,j] = x[i,j] rrms[i] weight[j]. x, y (rows,n): S, rows dense; weight
/// (n), rrms (rows): float32; y and rrms share no memory with x and weight. Offsets take 64 bits. Weights are prefetched
/// while the previous kernel ends. Error: n terms in any order, rsqrtf.
template <class S>
struct Rmsnorm {
  Index rows, n;
  const S* x;
  Index x_ld;
  const float* weight;
  float eps;
  S* y;
  Index y_ld;
  float* rrms;
};

constexpr int kLongRow = 1024;  ///< most threads of a block that has one row
constexpr int kHeld = 4;        ///< packs of a row that a thread keeps in registers; a longer row is read again

template <class S>
__device__ inline float squares(const Pack<S>& pack) {
  const Elements<S> v = widened(pack);
  float even = 0.0f, odd = 0.0f;
#pragma unroll
  for (int e = 0; e < kPack<S>; e += 2) even += v.at[e] * v.at[e], odd += v.at[e + 1] * v.at[e + 1];
  return even + odd;
}

template <class S, int threads, bool whole>
__global__ void __launch_bounds__(threads == 32 ? kRowThreads : threads) rmsnorm_kernel(Rmsnorm<S> a) {
  ASSAY_SHARED(float, scratch, [kLongRow / 32]);
  const Team<threads> team;
  const Index row = team.number;
  const int n = static_cast<int>(a.n), first = kPack<S> * team.place, step = kPack<S> * team.size,
            rest = first + kHeld * step;
  let_next_begin();
  if (row == 0)
    for (int j = first; j < n; j += step) prefetch(a.weight + j);
  await_previous();
  if (row >= a.rows) return;  // whole warps, or no thread of the block
  const S* const x = a.x + row * a.x_ld;
  Pack<S> held[kHeld];
#pragma unroll
  for (int h = 0; h < kHeld; ++h) held[h] = load_pack<whole>(x, first + h * step, n);
  Elements<S> w[kHeld];
#pragma unroll
  for (int h = 0; h < kHeld; ++h) w[h] = load_floats<S, whole>(a.weight, first + h * step, n);
  float sum = 0.0f;
#pragma unroll
  for (int h = 0; h < kHeld; ++h) sum += squares(held[h]);
  for (int j = rest; j < n; j += step) sum += squares(load_pack<whole>(x, j, n));
  sum = reduce_row<threads, Plus>(sum, scratch);
  const float rrms = rsqrtf(sum / static_cast<float>(n) + a.eps);
  if (team.place == 0) a.rrms[row] = rrms;
  S* const y = a.y + row * a.y_ld;
  const auto normalize = [&](const Pack<S>& pack, const Elements<S>& w, int j) {
    Elements<S> v = widened(pack);
#pragma unroll
    for (int e = 0; e < kPack<S>; ++e) v.at[e] = v.at[e] * rrms * w.at[e];
    store_pack<whole>(y, j, n, v);
  };
#pragma unroll
  for (int h = 0; h < kHeld; ++h) normalize(held[h], w[h], first + h * step);
  for (int j = rest; j < n; j += step) normalize(load_pack<whole>(x, j, n), load_floats<S, whole>(a.weight, j, n), j);
}

/// A warp a row that its registers hold, else a block with as many warps as hold the row.
template <class S, bool whole>
void launch_rmsnorm(const Rmsnorm<S>& a, Device& device) {
  constexpr Index kOfWarp = 32 * kHeld * kPack<S>;
  const dim3 threads(static_cast<unsigned>(std::min<Index>(kLongRow, (a.n + kOfWarp - 1) / kOfWarp * 32)));
  if (a.n <= kOfWarp)
    launch_overlapping(&rmsnorm_kernel<S, 32, whole>, {dim3(blocks_for(a.rows, kRowThreads / 32)), dim3(kRowThreads)},
                       device, a);
  else
    launch_overlapping(&rmsnorm_kernel<S, kLongRow, whole>, {dim3(static_cast<unsigned>(a.rows)), threads}, device, a);
}

template <class S>
void run(const ops::RmsnormArgs& args, Device& device) {
  if (args.rows == 0) return;
  const Rmsnorm<S> a{args.rows,
                     args.n,
                     static_cast<const S*>(args.x.data()),
                     row_stride(args.x),
                     args.weight.data(),
                     static_cast<float>(args.eps),
                     static_cast<S*>(args.y.data()),
                     row_stride(args.y),
                     args.rrms.data()};
  if (packed(a.x, a.x_ld, a.n) && packed(a.weight, 0, a.n) && packed(a.y, a.y_ld, a.n))
    launch_rmsnorm<S, true>(a, device);
  else launch_rmsnorm<S, false>(a, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "a warp or a block a row, which registers hold; 16 bytes a load",
                             .run = &run_typed<ops::RmsnormArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("rmsnorm/" ASSAY_CUDA_NAME "/rows"),
                                            add<Half>("rmsnorm/" ASSAY_CUDA_NAME "/rows_f16"),
                                            add<BFloat16>("rmsnorm/" ASSAY_CUDA_NAME "/rows_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm
