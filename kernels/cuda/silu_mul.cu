// The gate of SwiGLU: element by element, in packs of 16 bytes.
#include "kernels/cuda/packs.cuh"
#include "kernels/cuda/silu_mul.cuh"
#include "ops/silu_mul.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul {
namespace {

using ops::SiluMulArgs;

constexpr int kPacksInFlight = 2;  ///< of gate and of up that a thread loads together

/// y[i,j] = gate[i,j] sigmoid(gate[i,j]) up[i,j] for gate, up, y (rows,n): S, rows dense; y shares no memory with the
/// others. Offsets take 64 bits.
template <class S>
struct SiluMul {
  Index rows, n;
  const S* gate;
  Index gate_ld;
  const S* up;
  Index up_ld;
  S* y;
  Index y_ld;
};

__device__ inline float gated(float gate, float up) {
  const float s = sigmoid_and_rest(gate).x;
  return gate * s * up;
}

/// Threads in x walk a row, threads in y walk rows.
template <class S, bool whole>
__global__ void __launch_bounds__(kRowThreads) silu_mul_kernel(SiluMul<S> a) {
  const int n = static_cast<int>(a.n), step = static_cast<int>(blockDim.x) * kPack<S>;
  const int first = static_cast<int>(blockIdx.x) * kPacksInFlight * step + static_cast<int>(threadIdx.x) * kPack<S>;
  let_next_begin();
  await_previous();
  for (Index row = Index{blockIdx.y} * blockDim.y + threadIdx.y; row < a.rows; row += Index{gridDim.y} * blockDim.y) {
    Pack<S> gate[kPacksInFlight], up[kPacksInFlight];
#pragma unroll
    for (int i = 0; i < kPacksInFlight; ++i) {
      gate[i] = load_pack<whole>(a.gate + row * a.gate_ld, first + i * step, n);
      up[i] = load_pack<whole>(a.up + row * a.up_ld, first + i * step, n);
    }
#pragma unroll
    for (int i = 0; i < kPacksInFlight; ++i) {
      Elements<S> v = widened(gate[i]);
      const Elements<S> u = widened(up[i]);
#pragma unroll
      for (int e = 0; e < kPack<S>; ++e) v.at[e] = gated(v.at[e], u.at[e]);
      store_pack<whole>(a.y + row * a.y_ld, first + i * step, n, v);
    }
  }
}

template <class S>
void run(const SiluMulArgs& args, Device& device) {
  if (args.rows == 0) return;
  const SiluMul<S> a{args.rows,
                     args.n,
                     static_cast<const S*>(args.gate.data()),
                     row_stride(args.gate),
                     static_cast<const S*>(args.up.data()),
                     row_stride(args.up),
                     static_cast<S*>(args.y.data()),
                     row_stride(args.y)};
  unsigned wide = 8;
  while (wide < kRowThreads && Index{wide} * kPacksInFlight * kPack<S> < a.n) wide *= 2;
  const dim3 block(wide, kRowThreads / wide);
  const dim3 grid(blocks_for(a.n, Index{wide} * kPacksInFlight * kPack<S>),
                  std::min(blocks_for(a.rows, block.y), 65535U));
  const bool whole = packed(a.gate, a.gate_ld, a.n) && packed(a.up, a.up_ld, a.n) && packed(a.y, a.y_ld, a.n);
  launch_overlapping(whole ? &silu_mul_kernel<S, true> : &silu_mul_kernel<S, false>, {grid, block}, device, a);
}

template <class S>
KernelRegistration vectors(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "one pass, two packs of 16 bytes a thread",
                             .run = &run_typed<SiluMulArgs, &run<S>>});
}

const KernelRegistration registrations[] = {
    vectors<float>("silu_mul/" ASSAY_CUDA_NAME "/vectors"),
    vectors<Half>("silu_mul/" ASSAY_CUDA_NAME "/vectors_f16"),
    vectors<BFloat16>("silu_mul/" ASSAY_CUDA_NAME "/vectors_bf16"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul
