// Gradient of softmax, a warp or a block per row.
#include "kernels/cuda/rows.cuh"
#include "ops/softmax_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax_backward {
namespace {

/// dx[i,j] = y[i,j] (dy[i,j] - sum_k y[i,k] dy[i,k]). y, dy, dx (rows,n): S, rows dense; dx shares no memory with
/// the others. Offsets take 64 bits.
template <class S>
struct SoftmaxBackward {
  Index rows, n;
  const S* y;
  Index y_ld;
  const S* dy;
  Index dy_ld;
  S* dx;
  Index dx_ld;
  bool y_aligned, dy_aligned, dx_aligned;
};

template <class S, int threads>
__global__ void __launch_bounds__(kRowThreads) softmax_backward_kernel(SoftmaxBackward<S> a) {
  ASSAY_SHARED(float, scratch, [kRowThreads / 32]);
  const Index row = own_row<threads>();
  if (row >= a.rows) return;  // whole warps, or no thread of the block
  const S* const y = a.y + row * a.y_ld;
  const S* const dy = a.dy + row * a.dy_ld;
  const Index first = 4 * own_place<threads>(), step = 4 * row_threads<threads>();
  float sum = 0.0f;
  for (Index j = first; j < a.n; j += step) {
    const float4 g = load4(dy, j, a.n, a.dy_aligned);
    const float4 p = load4(y, j, a.n, a.y_aligned);
    sum += p.x * g.x + p.y * g.y + (p.z * g.z + p.w * g.w);
  }
  sum = reduce_row<threads, Plus>(sum, scratch);
  S* const dx = a.dx + row * a.dx_ld;
  for (Index j = first; j < a.n; j += step) {
    const float4 p = load4(y, j, a.n, a.y_aligned), g = load4(dy, j, a.n, a.dy_aligned);
    store4(dx, j, a.n, a.dx_aligned,
           make_float4(p.x * (g.x - sum), p.y * (g.y - sum), p.z * (g.z - sum), p.w * (g.w - sum)));
  }
}

template <class S>
void run(const ops::SoftmaxBackwardArgs& args, Device& device) {
  const Index y_ld = row_stride(args.y), dy_ld = row_stride(args.dy), dx_ld = row_stride(args.dx);
  const auto* y = static_cast<const S*>(args.y.data());
  const auto* dy = static_cast<const S*>(args.dy.data());
  auto* dx = static_cast<S*>(args.dx.data());
  const SoftmaxBackward<S> a{args.rows,
                             args.n,
                             y,
                             y_ld,
                             dy,
                             dy_ld,
                             dx,
                             dx_ld,
                             rows_aligned(y, y_ld),
                             rows_aligned(dy, dy_ld),
                             rows_aligned(dx, dx_ld)};
  launch_rows(&softmax_backward_kernel<S, 32>, &softmax_backward_kernel<S, kRowThreads>, args.rows, args.n, device, a);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "a warp a row of up to 1024 entries, else a block; four entries a thread",
                             .run = &run_typed<ops::SoftmaxBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("softmax_backward/" ASSAY_CUDA_NAME "/rows"),
                                            add<Half>("softmax_backward/" ASSAY_CUDA_NAME "/rows_f16"),
                                            add<BFloat16>("softmax_backward/" ASSAY_CUDA_NAME "/rows_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax_backward
