// Gradients of rmsnorm with CUDA: dx by a warp or a block per row, dweight by a block per 32 columns.
#include "kernels/cuda/rows.cuh"
#include "ops/rmsnorm_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm_backward {
namespace {

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
  bool x_aligned, weight_aligned, dy_aligned, dx_aligned;
};

template <class S, int threads>
__global__ void __launch_bounds__(kRowThreads) rmsnorm_dx_kernel(RmsnormBackward<S> a) {
  ASSAY_SHARED(float, scratch, [kRowThreads / 32]);
  const Index row = own_row<threads>();
  if (row >= a.rows) return;  // whole warps, or no thread of the block
  const S* const x = a.x + row * a.x_ld;
  const S* const dy = a.dy + row * a.dy_ld;
  const Index first = 4 * own_place<threads>(), step = 4 * row_threads<threads>();
  const float rrms = a.rrms[row];
  float sum = 0.0f;
  for (Index j = first; j < a.n; j += step) {
    const float4 v = load4(x, j, a.n, a.x_aligned), g = load4(dy, j, a.n, a.dy_aligned);
    const float4 w = load4(a.weight, j, a.n, a.weight_aligned);
    sum += g.x * w.x * (v.x * rrms) + g.y * w.y * (v.y * rrms) + (g.z * w.z * (v.z * rrms) + g.w * w.w * (v.w * rrms));
  }
  const float mean = reduce_row<threads, Plus>(sum, scratch) / static_cast<float>(a.n);
  S* const dx = a.dx + row * a.dx_ld;
  for (Index j = first; j < a.n; j += step) {
    const float4 v = load4(x, j, a.n, a.x_aligned), g = load4(dy, j, a.n, a.dy_aligned);
    const float4 w = load4(a.weight, j, a.n, a.weight_aligned);
    store4(dx, j, a.n, a.dx_aligned,
           make_float4(rrms * (g.x * w.x - v.x * rrms * mean), rrms * (g.y * w.y - v.y * rrms * mean),
                       rrms * (g.z * w.z - v.z * rrms * mean), rrms * (g.w * w.w - v.w * rrms * mean)));
  }
}

constexpr int kColumns = 32, kRowGroups = 8;

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

template <class S>
void run(const ops::RmsnormBackwardArgs& args, Device& device) {
  const Index x_ld = row_stride(args.x), dy_ld = row_stride(args.dy), dx_ld = row_stride(args.dx);
  const auto* x = static_cast<const S*>(args.x.data());
  const auto* dy = static_cast<const S*>(args.dy.data());
  auto* dx = static_cast<S*>(args.dx.data());
  const RmsnormBackward<S> a{args.rows,
                             args.n,
                             x,
                             x_ld,
                             args.weight.data(),
                             args.rrms.data(),
                             dy,
                             dy_ld,
                             dx,
                             dx_ld,
                             args.dweight.data(),
                             rows_aligned(x, x_ld),
                             rows_aligned(args.weight.data(), 0),
                             rows_aligned(dy, dy_ld),
                             rows_aligned(dx, dx_ld)};
  launch_rows(&rmsnorm_dx_kernel<S, 32>, &rmsnorm_dx_kernel<S, kRowThreads>, args.rows, args.n, device, a);
  launch(&rmsnorm_dweight_kernel<S>, {dim3(blocks_for(args.n, kColumns)), dim3(kColumns, kRowGroups)}, device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::cuda},
       .storage = dtype_of<S>,
       .summary = "dx a warp or a block a row; dweight a block for 32 columns, 8 threads a column",
       .run = &run_typed<ops::RmsnormBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("rmsnorm_backward/" ASSAY_CUDA_NAME "/rows"),
                                            add<Half>("rmsnorm_backward/" ASSAY_CUDA_NAME "/rows_f16"),
                                            add<BFloat16>("rmsnorm_backward/" ASSAY_CUDA_NAME "/rows_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rmsnorm_backward
