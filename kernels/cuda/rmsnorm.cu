// Root mean square normalization with CUDA, a warp or a block a row.
#include "kernels/cuda/rows.cuh"
#include "ops/rmsnorm.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm {
namespace {

/// rrms[i] = 1 / sqrt(sum_j x[i,j]² / n + eps), y[i,j] = x[i,j] rrms[i] weight[j]. x, y (rows,n): S, rows dense; weight
/// (n), rrms (rows): float32; y and rrms share no memory with x and weight. Offsets take 64 bits. The second pass over
/// a row hits the cache. Weights are prefetched while the previous kernel ends. Error: n terms in any order, rsqrtf.
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
  bool x_aligned, weight_aligned, y_aligned;
};

constexpr int kLongRow = 1024;  ///< most threads of a block that has one row

template <class S, int threads>
__global__ void __launch_bounds__(threads == 32 ? kRowThreads : threads) rmsnorm_kernel(Rmsnorm<S> a) {
  ASSAY_SHARED(float, scratch, [kLongRow / 32]);
  const Index row = own_row<threads>();
  const Index first = 4 * own_place<threads>(), step = 4 * row_threads<threads>();
  let_next_begin();
  for (Index j = first; j < a.n; j += step) prefetch(a.weight + j);
  await_previous();
  if (row >= a.rows) return;  // whole warps, or no thread of the block
  const S* const x = a.x + row * a.x_ld;
  float sum = 0.0f;
  for (Index j = first; j < a.n; j += step) {
    const float4 v = load4(x, j, a.n, a.x_aligned);
    sum += v.x * v.x + v.y * v.y + (v.z * v.z + v.w * v.w);
  }
  sum = reduce_row<threads, Plus>(sum, scratch);
  const float rrms = rsqrtf(sum / static_cast<float>(a.n) + a.eps);
  if (own_place<threads>() == 0) a.rrms[row] = rrms;
  S* const y = a.y + row * a.y_ld;
  for (Index j = first; j < a.n; j += step) {
    const float4 v = load4(x, j, a.n, a.x_aligned), w = load4(a.weight, j, a.n, a.weight_aligned);
    store4(y, j, a.n, a.y_aligned, make_float4(v.x * rrms * w.x, v.y * rrms * w.y, v.z * rrms * w.z, v.w * rrms * w.w));
  }
}

template <class S>
void run(const ops::RmsnormArgs& args, Device& device) {
  const Index x_ld = row_stride(args.x), y_ld = row_stride(args.y);
  const auto* x = static_cast<const S*>(args.x.data());
  auto* y = static_cast<S*>(args.y.data());
  const Rmsnorm<S> a{args.rows,
                     args.n,
                     x,
                     x_ld,
                     args.weight.data(),
                     static_cast<float>(args.eps),
                     y,
                     y_ld,
                     args.rrms.data(),
                     rows_aligned(x, x_ld),
                     rows_aligned(args.weight.data(), 0),
                     rows_aligned(y, y_ld)};
  if (args.rows == 0) return;
  const dim3 threads(static_cast<unsigned>(std::min<Index>(kLongRow, (args.n + 127) / 128 * 32)));
  if (args.n <= kWarpRow)
    launch_overlapping(&rmsnorm_kernel<S, 32>, {dim3(blocks_for(args.rows, kRowThreads / 32)), dim3(kRowThreads)},
                       device, a);
  else launch_overlapping(&rmsnorm_kernel<S, kLongRow>, {dim3(static_cast<unsigned>(args.rows)), threads}, device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "a warp a row of up to 1024 elements, else a block; four elements a thread",
                             .run = &run_typed<ops::RmsnormArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("rmsnorm/" ASSAY_CUDA_NAME "/rows"),
                                            add<Half>("rmsnorm/" ASSAY_CUDA_NAME "/rows_f16"),
                                            add<BFloat16>("rmsnorm/" ASSAY_CUDA_NAME "/rows_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm
