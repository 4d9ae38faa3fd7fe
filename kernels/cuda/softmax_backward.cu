// Gradient of softmax, a warp or a block per row.
#include "kernels/cuda/rows.cuh"
#include "ops/softmax_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax_backward {
namespace {

/// dx[i,j] = y[i,j] (dy[i,j] - sum_k y[i,k] dy[i,k]). y, dy, dx (rows,n): float32, rows dense; dx shares no memory with
/// the others. Offsets take 64 bits.
struct SoftmaxBackward {
  Index rows, n;
  const float* y;
  Index y_ld;
  const float* dy;
  Index dy_ld;
  float* dx;
  Index dx_ld;
  bool y_aligned, dy_aligned, dx_aligned;
};

template <int threads>
__global__ void __launch_bounds__(kRowThreads) softmax_backward_kernel(SoftmaxBackward a) {
  ASSAY_SHARED(float, scratch, [kRowThreads / 32]);
  const Index row = own_row<threads>();
  if (row >= a.rows) return;  // whole warps, or no thread of the block
  const float* const y = a.y + row * a.y_ld;
  const float* const dy = a.dy + row * a.dy_ld;
  const Index first = 4 * own_place<threads>(), step = 4 * row_threads<threads>();
  float sum = 0.0f;
  for (Index j = first; j < a.n; j += step) {
    const float4 g = load4(dy, j, a.n, a.dy_aligned);
    const float4 p = load4(y, j, a.n, a.y_aligned);
    sum += p.x * g.x + p.y * g.y + (p.z * g.z + p.w * g.w);
  }
  sum = reduce_row<threads, Plus>(sum, scratch);
  float* const dx = a.dx + row * a.dx_ld;
  for (Index j = first; j < a.n; j += step) {
    const float4 p = load4(y, j, a.n, a.y_aligned), g = load4(dy, j, a.n, a.dy_aligned);
    store4(dx, j, a.n, a.dx_aligned,
           make_float4(p.x * (g.x - sum), p.y * (g.y - sum), p.z * (g.z - sum), p.w * (g.w - sum)));
  }
}

void run(const ops::SoftmaxBackwardArgs& args, Device& device) {
  const Index y_ld = row_stride(args.y), dy_ld = row_stride(args.dy), dx_ld = row_stride(args.dx);
  const SoftmaxBackward a{args.rows,
                          args.n,
                          args.y.data(),
                          y_ld,
                          args.dy.data(),
                          dy_ld,
                          args.dx.data(),
                          dx_ld,
                          rows_aligned(args.y.data(), y_ld),
                          rows_aligned(args.dy.data(), dy_ld),
                          rows_aligned(args.dx.data(), dx_ld)};
  launch_rows(&softmax_backward_kernel<32>, &softmax_backward_kernel<kRowThreads>, args.rows, args.n, device, a);
}

const KernelRegistration rows{{.id = "softmax_backward/" ASSAY_CUDA_NAME "/rows",
                               .arithmetic = {.functions = FunctionLibrary::cuda},
                               .summary = "a warp a row of up to 1024 entries, else a block; four entries a thread",
                               .run = &run_typed<ops::SoftmaxBackwardArgs, &run>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax_backward
