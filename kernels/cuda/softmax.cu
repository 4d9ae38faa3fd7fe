// Softmax of rows, a warp or a block per row, with one pass over memory for the maximum and the sum.
#include "kernels/cuda/rows.cuh"
#include "ops/softmax.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax {
namespace {

/// y[i,j] = exp(x[i,j] - m) / sum_k exp(x[i,k] - m), m = max_k x[i,k]; zeros if all of a row is -inf. x, y (rows,n):
/// S, rows dense; they share no memory. Offsets take 64 bits. A thread rescales its sum when its maximum grows
/// (Milakov & Gimelshein, arXiv:1805.02867): at most once per 128 entries of the row, and once more for the row's
/// maximum.
template <class S>
struct Softmax {
  Index rows, n;
  const S* x;
  Index x_ld;
  S* y;
  Index y_ld;
  bool x_aligned, y_aligned;
};

template <class S, int threads>
__global__ void __launch_bounds__(kRowThreads) softmax_kernel(Softmax<S> a) {
  ASSAY_SHARED(float, scratch, [kRowThreads / 32]);
  const Index row = own_row<threads>();
  if (row >= a.rows) return;  // whole warps, or no thread of the block
  const S* const x = a.x + row * a.x_ld;
  const Index first = 4 * own_place<threads>(), step = 4 * row_threads<threads>();
  const Larger larger;
  float own = -INFINITY, sum = 0.0f;
  for (Index j = first; j < a.n; j += step) {
    const float4 v = load4(x, j, a.n, a.x_aligned, -INFINITY);
    const float grown = larger(larger(own, larger(v.x, v.y)), larger(v.z, v.w));
    // -inf only so far: the sum stays 0, or NaN after a NaN.
    const float shift = grown == -INFINITY ? 0.0f : grown;
    if (own < grown && own > -INFINITY) sum *= expf(own - grown);
    sum += expf(v.x - shift) + expf(v.y - shift) + (expf(v.z - shift) + expf(v.w - shift));
    own = grown;
  }
  const float largest = reduce_row<threads, Larger>(own, scratch);
  const float shift = largest == -INFINITY ? 0.0f : largest;
  if (own < largest && own > -INFINITY) sum *= expf(own - largest);
  sum = reduce_row<threads, Plus>(sum, scratch);
  const float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
  S* const y = a.y + row * a.y_ld;
  for (Index j = first; j < a.n; j += step) {
    const float4 v = load4(x, j, a.n, a.x_aligned);
    store4(y, j, a.n, a.y_aligned,
           make_float4(expf(v.x - shift) * scale, expf(v.y - shift) * scale, expf(v.z - shift) * scale,
                       expf(v.w - shift) * scale));
  }
}

template <class S>
void run(const ops::SoftmaxArgs& args, Device& device) {
  const Index x_ld = row_stride(args.x), y_ld = row_stride(args.y);
  const auto* x = static_cast<const S*>(args.x.data());
  auto* y = static_cast<S*>(args.y.data());
  const Softmax<S> a{args.rows, args.n, x, x_ld, y, y_ld, rows_aligned(x, x_ld), rows_aligned(y, y_ld)};
  launch_rows(&softmax_kernel<S, 32>, &softmax_kernel<S, kRowThreads>, args.rows, args.n, device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda, .online_tile = 128},
                             .storage = dtype_of<S>,
                             .summary = "maximum and sum in one pass, a warp a row of up to 1024 entries, else a block",
                             .run = &run_typed<ops::SoftmaxArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("softmax/" ASSAY_CUDA_NAME "/online"),
                                            add<Half>("softmax/" ASSAY_CUDA_NAME "/online_f16"),
                                            add<BFloat16>("softmax/" ASSAY_CUDA_NAME "/online_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax
