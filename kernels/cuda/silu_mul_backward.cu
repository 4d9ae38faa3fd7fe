// Gradients of the gate of SwiGLU: element by element, in packs of 16 bytes.
#include "kernels/cuda/packs.cuh"
#include "kernels/cuda/silu_mul.cuh"
#include "ops/silu_mul_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul_backward {
namespace {

constexpr int kPacksInFlight = 2;  ///< of gate, up and dy that a thread loads together

/// dgate = dy up (s + gate s (1 - s)), dup = dy gate s, s = sigmoid(gate) for matrices (rows,n): S, rows dense; outputs
/// share no memory with inputs or each other. Offsets take 64 bits.
template <class S>
struct SiluMulBackward {
  Index rows, n;
  const S* gate;
  Index gate_ld;
  const S* up;
  Index up_ld;
  const S* dy;
  Index dy_ld;
  S* dgate;
  Index dgate_ld;
  S* dup;
  Index dup_ld;
};

/// dgate and dup of one element.
__device__ inline float2 gate_gradients(float gate, float up, float dy) {
  const float2 s = sigmoid_and_rest(gate);
  const float silu = gate * s.x, slope = s.x + silu * s.y;
  return make_float2(dy * up * slope, dy * silu);
}

/// Blocks in x and threads in y walk rows; blocks in y and threads in x walk a row.
template <class S, bool whole>
__global__ void __launch_bounds__(kRowThreads) silu_mul_backward_kernel(SiluMulBackward<S> a) {
  const int n = static_cast<int>(a.n), step = static_cast<int>(blockDim.x) * kPack<S>;
  const int first = static_cast<int>(blockIdx.y) * kPacksInFlight * step + static_cast<int>(threadIdx.x) * kPack<S>;
  const Index row = Index{blockIdx.x} * blockDim.y + threadIdx.y;
  let_next_begin();
  await_previous();
  if (row >= a.rows) return;
  Pack<S> gate[kPacksInFlight], up[kPacksInFlight], dy[kPacksInFlight];
#pragma unroll
  for (int i = 0; i < kPacksInFlight; ++i) {
    gate[i] = load_pack<whole>(a.gate + row * a.gate_ld, first + i * step, n);
    up[i] = load_pack<whole>(a.up + row * a.up_ld, first + i * step, n);
    dy[i] = load_pack<whole>(a.dy + row * a.dy_ld, first + i * step, n);
  }
#pragma unroll
  for (int i = 0; i < kPacksInFlight; ++i) {
    Elements<S> g = widened(gate[i]), u = widened(up[i]);
    const Elements<S> d = widened(dy[i]);
#pragma unroll
    for (int e = 0; e < kPack<S>; ++e) {
      const float2 both = gate_gradients(g.at[e], u.at[e], d.at[e]);
      g.at[e] = both.x, u.at[e] = both.y;
    }
    store_pack<whole>(a.dgate + row * a.dgate_ld, first + i * step, n, g);
    store_pack<whole>(a.dup + row * a.dup_ld, first + i * step, n, u);
  }
}

template <class S>
void run(const ops::SiluMulBackwardArgs& args, Device& device) {
  if (args.rows == 0) return;
  const SiluMulBackward<S> a{args.rows,
                             args.n,
                             static_cast<const S*>(args.gate.data()),
                             row_stride(args.gate),
                             static_cast<const S*>(args.up.data()),
                             row_stride(args.up),
                             static_cast<const S*>(args.dy.data()),
                             row_stride(args.dy),
                             static_cast<S*>(args.dgate.data()),
                             row_stride(args.dgate),
                             static_cast<S*>(args.dup.data()),
                             row_stride(args.dup)};
  unsigned wide = 8;
  while (wide < kRowThreads && Index{wide} * kPacksInFlight * kPack<S> < a.n) wide *= 2;
  const dim3 block(wide, kRowThreads / wide);
  const dim3 grid(blocks_for(a.rows, block.y), blocks_for(a.n, Index{wide} * kPacksInFlight * kPack<S>));
  const bool whole = packed(a.gate, a.gate_ld, a.n) && packed(a.up, a.up_ld, a.n) && packed(a.dy, a.dy_ld, a.n) &&
                     packed(a.dgate, a.dgate_ld, a.n) && packed(a.dup, a.dup_ld, a.n);
  launch_overlapping(whole ? &silu_mul_backward_kernel<S, true> : &silu_mul_backward_kernel<S, false>, {grid, block},
                     device, a);
}

template <class S>
KernelRegistration vectors(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "both gradients in one pass, two packs of 16 bytes a thread",
                             .run = &run_typed<ops::SiluMulBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {
    vectors<float>("silu_mul_backward/" ASSAY_CUDA_NAME "/vectors"),
    vectors<Half>("silu_mul_backward/" ASSAY_CUDA_NAME "/vectors_f16"),
    vectors<BFloat16>("silu_mul_backward/" ASSAY_CUDA_NAME "/vectors_bf16"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul_backward
