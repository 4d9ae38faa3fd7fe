// Gradients of rmsnorm: dx by a warp or a block per row, dweight by a block per 32 columns; shared by kernels that are
// given the reciprocal RMS and kernels that form it.
#pragma once

#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// With a = dy weight and xn = x rrms: dx[i,j] = rrms[i] (a[i,j] - xn[i,j] sum_k a[i,k] xn[i,k] / n), dweight[j] =
/// sum_i dy[i,j] xn[i,j]. x, dy, dx (rows,n): S, rows dense; weight, dweight (n), rrms (rows). dx and dweight
/// share no memory with the inputs or each other. Offsets take 64 bits. Orders of sums over n and over rows depend on
/// the shape alone; no atomics.
template <class S>
struct RmsnormBackward {
  Index rows, n;
  const S* x;
  Index x_ld;
  const float* weight;
  const float* rrms;
  const S* dy;
  Index dy_ld;
  S* dx;
  Index dx_ld;
  float* dweight;
  float* formed;  ///< where the kernel of dx writes rrms if it forms it
  float eps;
  bool x_aligned, weight_aligned, dy_aligned, dx_aligned;
};

/// `given`: rrms is read. Otherwise it is 1 / sqrt(sum_j x[i,j]² / n + eps), and the projection, which is summed in the
/// same pass, is multiplied by it afterwards.
template <class S, int threads, bool given>
__global__ void __launch_bounds__(kRowThreads) rmsnorm_dx_kernel(RmsnormBackward<S> a) {
  ASSAY_SHARED(float, scratch, [kRowThreads / 32]);
  const Index row = own_row<threads>();
  if (row >= a.rows) return;  // whole warps, or no thread of the block
  const S* const x = a.x + row * a.x_ld;
  const S* const dy = a.dy + row * a.dy_ld;
  const Index first = 4 * own_place<threads>(), step = 4 * row_threads<threads>();
  float rrms = given ? a.rrms[row] : 1.0f, sum = 0.0f, squares = 0.0f;
  for (Index j = first; j < a.n; j += step) {
    const float4 v = load4(x, j, a.n, a.x_aligned), g = load4(dy, j, a.n, a.dy_aligned);
    const float4 w = load4(a.weight, j, a.n, a.weight_aligned);
    sum += g.x * w.x * (v.x * rrms) + g.y * w.y * (v.y * rrms) + (g.z * w.z * (v.z * rrms) + g.w * w.w * (v.w * rrms));
    if constexpr (!given) squares += v.x * v.x + v.y * v.y + (v.z * v.z + v.w * v.w);
  }
  sum = reduce_row<threads, Plus>(sum, scratch);
  if constexpr (!given) {
    rrms = rsqrtf(reduce_row<threads, Plus>(squares, scratch) / static_cast<float>(a.n) + a.eps);
    if (own_place<threads>() == 0) a.formed[row] = rrms;
    sum *= rrms;
  }
  const float mean = sum / static_cast<float>(a.n);
  S* const dx = a.dx + row * a.dx_ld;
  for (Index j = first; j < a.n; j += step) {
    const float4 v = load4(x, j, a.n, a.x_aligned), g = load4(dy, j, a.n, a.dy_aligned);
    const float4 w = load4(a.weight, j, a.n, a.weight_aligned);
    store4(dx, j, a.n, a.dx_aligned,
           make_float4(rrms * (g.x * w.x - v.x * rrms * mean), rrms * (g.y * w.y - v.y * rrms * mean),
                       rrms * (g.z * w.z - v.z * rrms * mean), rrms * (g.w * w.w - v.w * rrms * mean)));
  }
}

inline constexpr int kColumns = 32, kRowGroups = 8;

/// Thread (c, g) of a block sums rows g, g + 8, .. of its column; then the eight sums are added in order.
template <class S>
__global__ void __launch_bounds__(kColumns* kRowGroups) rmsnorm_dweight_kernel(RmsnormBackward<S> a) {
  ASSAY_SHARED(float, sums, [kRowGroups][kColumns]);
  const Index column = Index{blockIdx.x} * kColumns + threadIdx.x;
  float sum = 0.0f;
  if (column < a.n)
    for (Index i = threadIdx.y; i < a.rows; i += kRowGroups)
      sum += load(a.dy[i * a.dy_ld + column]) * (load(a.x[i * a.x_ld + column]) * a.rrms[i]);
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= a.n) return;
  for (int g = 1; g < kRowGroups; ++g) sum += sums[g][threadIdx.x];
  a.dweight[column] = sum;
}

/// Launches both kernels. `given`: args has rrms; otherwise it has eps, and the device frees the scratch for rrms after
/// use.
template <class S, bool given, class Args>
void run_rmsnorm_backward(const Args& args, Device& device) {
  const Index x_ld = row_stride(args.x), dy_ld = row_stride(args.dy), dx_ld = row_stride(args.dx);
  const auto* x = static_cast<const S*>(args.x.data());
  const auto* dy = static_cast<const S*>(args.dy.data());
  auto* dx = static_cast<S*>(args.dx.data());
  Buffer scratch;
  const float* rrms = nullptr;
  float *formed = nullptr, eps = 0.0f;
  if constexpr (given) {
    rrms = args.rrms.data();
  } else {
    scratch = device.allocate(static_cast<std::size_t>(std::max<Index>(args.rows, 1)) * sizeof(float));
    rrms = formed = static_cast<float*>(scratch.address());
    eps = static_cast<float>(args.eps);
  }
  const RmsnormBackward<S> a{args.rows,
                             args.n,
                             x,
                             x_ld,
                             args.weight.data(),
                             rrms,
                             dy,
                             dy_ld,
                             dx,
                             dx_ld,
                             args.dweight.data(),
                             formed,
                             eps,
                             rows_aligned(x, x_ld),
                             rows_aligned(args.weight.data(), 0),
                             rows_aligned(dy, dy_ld),
                             rows_aligned(dx, dx_ld)};
  launch_rows(&rmsnorm_dx_kernel<S, 32, given>, &rmsnorm_dx_kernel<S, kRowThreads, given>, args.rows, args.n, device,
              a);
  launch(&rmsnorm_dweight_kernel<S>, {dim3(blocks_for(args.n, kColumns)), dim3(kColumns, kRowGroups)}, device, a);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
