// Softmax of rows, a warp or a block a row, in one pass over memory for the maximum and the sum.
#pragma once

#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// y[i,j] = exp(x[i,j] - m) / sum_k exp(x[i,k] - m), m = max_k x[i,k]; zeros where all of a row is -inf. x, y (rows,n):
/// float32, rows dense; they share no memory. Offsets take 64 bits. A thread rescales its sum where its maximum grows
/// (Milakov & Gimelshein, arXiv:1805.02867): at most once for 128 entries of the row, and once more for the row's maximum.
struct Softmax {
  Index rows, n;
  const float* x;
  Index x_ld;
  float* y;
  Index y_ld;
  bool x_aligned, y_aligned;
};

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class SoftmaxFault { none, no_barrier, half_the_lanes_lost, mask_names_absent_lanes, not_rescaled, masked_row_nan, first_row_only };

template <int threads, SoftmaxFault fault>
__global__ void __launch_bounds__(kRowThreads) softmax_kernel(Softmax a) {
  ASSAY_SHARED(float, scratch, [kRowThreads / 32]);
  constexpr ReduceFault reduce = fault == SoftmaxFault::no_barrier            ? ReduceFault::no_barrier
                                 : fault == SoftmaxFault::half_the_lanes_lost ? ReduceFault::half_the_lanes_lost
                                                                              : ReduceFault::none;
  const Index row = own_row<threads>();
  if (row >= a.rows) return;  // whole warps, or no thread of the block
  const float* const x = a.x + row * a.x_ld;
  const Index first = 4 * own_place<threads>(), step = 4 * row_threads<threads>();
  const Larger larger;
  float own = -INFINITY, sum = 0.0f;
  for (Index j = first; j < a.n; j += step) {
    const float4 v = load4(x, j, a.n, a.x_aligned, -INFINITY);
    const float grown = larger(larger(own, larger(v.x, v.y)), larger(v.z, v.w));
    // Nothing but -inf so far: the sum stays 0, or NaN where a NaN came.
    const float shift = grown == -INFINITY ? 0.0f : grown;
    if (fault != SoftmaxFault::not_rescaled && own < grown && own > -INFINITY) sum *= expf(own - grown);
    sum += expf(v.x - shift) + expf(v.y - shift) + (expf(v.z - shift) + expf(v.w - shift));
    own = grown;
  }
  const float largest = reduce_row<threads, Larger, reduce>(own, scratch);
  const float shift = largest == -INFINITY && fault != SoftmaxFault::masked_row_nan ? 0.0f : largest;
  if (own < largest && own > -INFINITY) sum *= expf(own - largest);
  sum = reduce_row<threads, Plus, reduce>(sum, scratch);
  const float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
  float* const y = a.y + row * a.y_ld;
  for (Index j = first; j < a.n; j += step) {
    const float4 v = load4(x, j, a.n, a.x_aligned);
    store4(y, j, a.n, a.y_aligned,
           make_float4(expf(v.x - shift) * scale, expf(v.y - shift) * scale, expf(v.z - shift) * scale, expf(v.w - shift) * scale));
  }
}

/// Args: SoftmaxArgs.
template <SoftmaxFault fault = SoftmaxFault::none, class Args>
void run_softmax(const Args& args, Device& device) {
  const Index x_ld = row_stride(args.x), y_ld = row_stride(args.y);
  const Softmax a{args.rows,       args.n, args.x.data(), x_ld, args.y.data(), y_ld, rows_aligned(args.x.data(), x_ld),
                  rows_aligned(args.y.data(), y_ld)};
  const bool partial = fault == SoftmaxFault::mask_names_absent_lanes;
  launch_rows(&softmax_kernel<32, fault>, &softmax_kernel<kRowThreads, fault>,
              fault == SoftmaxFault::first_row_only ? std::min<Index>(args.rows, 1) : args.rows, args.n, device, a,
              partial || fault == SoftmaxFault::no_barrier,
              partial ? static_cast<unsigned>(std::clamp<Index>(args.n, 1, kRowThreads)) : 0);
}

/// The registry's row. Args: SoftmaxArgs.
template <class Args, SoftmaxFault fault = SoftmaxFault::none>
Kernel softmax_row(std::string_view id) {
  return {.op = "softmax",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda, .online_tile = 128},
          .source = "kernels/cuda/softmax.cuh",
          .summary = "maximum and sum in one pass, a warp a row of up to 1024 entries, else a block",
          .run = [](const Call& call, Device& device) { run_softmax<fault>(Args::unpack(call), device); }};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
