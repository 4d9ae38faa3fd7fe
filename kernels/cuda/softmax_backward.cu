// Gradient of softmax, a warp or a block a row, which registers hold; what they do not hold is read again.
#include "kernels/cuda/packs.cuh"
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
};

constexpr int kLongRow = 1024;  ///< most threads of a block that has one row
constexpr int kHeld = 2;        ///< packs of y and of dy that a thread keeps in registers

template <class S>
__device__ inline float product(const Pack<S>& y, const Pack<S>& dy) {
  const Elements<S> p = widened(y), g = widened(dy);
  float even = 0.0f, odd = 0.0f;
#pragma unroll
  for (int e = 0; e < kPack<S>; e += 2) even += p.at[e] * g.at[e], odd += p.at[e + 1] * g.at[e + 1];
  return even + odd;
}

template <class S, int threads, bool whole>
__global__ void __launch_bounds__(threads == 32 ? kRowThreads : threads) softmax_backward_kernel(SoftmaxBackward<S> a) {
  ASSAY_SHARED(float, scratch, [kLongRow / 32]);
  const Team<threads> team;
  const Index row = team.number;
  const int n = static_cast<int>(a.n), first = kPack<S> * team.place, step = kPack<S> * team.size,
            rest = first + kHeld * step;
  let_next_begin();
  await_previous();
  if (row >= a.rows) return;  // whole warps, or no thread of the block
  const S* const y = a.y + row * a.y_ld;
  const S* const dy = a.dy + row * a.dy_ld;
  Pack<S> held_y[kHeld], held_dy[kHeld];
#pragma unroll
  for (int h = 0; h < kHeld; ++h) {
    held_y[h] = load_pack<whole>(y, first + h * step, n);
    held_dy[h] = load_pack<whole>(dy, first + h * step, n);
  }
  float sum = 0.0f;
#pragma unroll
  for (int h = 0; h < kHeld; ++h) sum += product(held_y[h], held_dy[h]);
  for (int j = rest; j < n; j += step) sum += product(load_pack<whole>(y, j, n), load_pack<whole>(dy, j, n));
  sum = reduce_row<threads, Plus>(sum, scratch);
  S* const dx = a.dx + row * a.dx_ld;
  const auto finish = [&](const Pack<S>& of_y, const Pack<S>& of_dy, int j) {
    Elements<S> p = widened(of_y);
    const Elements<S> g = widened(of_dy);
#pragma unroll
    for (int e = 0; e < kPack<S>; ++e) p.at[e] *= g.at[e] - sum;
    store_pack<whole>(dx, j, n, p);
  };
#pragma unroll
  for (int h = 0; h < kHeld; ++h) finish(held_y[h], held_dy[h], first + h * step);
  for (int j = rest; j < n; j += step) finish(load_pack<whole>(y, j, n), load_pack<whole>(dy, j, n), j);
}

/// A warp a row that its registers hold, else a block with as many warps as hold the row.
template <class S, bool whole>
void launch_softmax_backward(const SoftmaxBackward<S>& a, Device& device) {
  constexpr Index kOfWarp = 32 * kHeld * kPack<S>;
  const dim3 threads(static_cast<unsigned>(std::min<Index>(kLongRow, (a.n + kOfWarp - 1) / kOfWarp * 32)));
  if (a.n <= kOfWarp)
    launch_overlapping(&softmax_backward_kernel<S, 32, whole>,
                       {dim3(blocks_for(a.rows, kRowThreads / 32)), dim3(kRowThreads)}, device, a);
  else
    launch_overlapping(&softmax_backward_kernel<S, kLongRow, whole>, {dim3(static_cast<unsigned>(a.rows)), threads},
                       device, a);
}

template <class S>
void run(const ops::SoftmaxBackwardArgs& args, Device& device) {
  if (args.rows == 0) return;
  const SoftmaxBackward<S> a{args.rows,
                             args.n,
                             static_cast<const S*>(args.y.data()),
                             row_stride(args.y),
                             static_cast<const S*>(args.dy.data()),
                             row_stride(args.dy),
                             static_cast<S*>(args.dx.data()),
                             row_stride(args.dx)};
  if (packed(a.y, a.y_ld, a.n) && packed(a.dy, a.dy_ld, a.n) && packed(a.dx, a.dx_ld, a.n))
    launch_softmax_backward<S, true>(a, device);
  else launch_softmax_backward<S, false>(a, device);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "a warp or a block a row, which registers hold; 16 bytes a load",
                             .run = &run_typed<ops::SoftmaxBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {add<float>("softmax_backward/" ASSAY_CUDA_NAME "/rows"),
                                            add<Half>("softmax_backward/" ASSAY_CUDA_NAME "/rows_f16"),
                                            add<BFloat16>("softmax_backward/" ASSAY_CUDA_NAME "/rows_bf16")};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_softmax_backward
