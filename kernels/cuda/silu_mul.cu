// The gate of SwiGLU: element by element, four to a thread.
#include "kernels/cuda/silu_mul.cuh"
#include "ops/silu_mul.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul {
namespace {

using ops::SiluMulArgs;

/// y[i,j] = gate[i,j] sigmoid(gate[i,j]) up[i,j] for gate, up, y (rows,n): S, rows dense; y shares no memory with the
/// others. Offsets take 64 bits.
template <class S>
struct SiluMul {
  Index rows, n;
  GateRows<const S> gate, up;
  GateRows<S> y;
};

__device__ inline float gated(float gate, float up) {
  const float s = sigmoid_and_rest(gate).x;
  return gate * s * up;
}

template <class S>
__global__ void __launch_bounds__(kRowThreads) silu_mul_kernel(SiluMul<S> a) {
  const Index quads = (a.n + 3) / 4;
  let_next_begin();
  await_previous();
  for (Index q = Index{blockIdx.x} * blockDim.x + threadIdx.x; q < a.rows * quads; q += Index{gridDim.x} * blockDim.x) {
    const Index row = q / quads, j = q % quads * 4;
    const float4 g = load4(a.gate.data + row * a.gate.ld, j, a.n, a.gate.aligned);
    const float4 u = load4(a.up.data + row * a.up.ld, j, a.n, a.up.aligned);
    store4(a.y.data + row * a.y.ld, j, a.n, a.y.aligned,
           make_float4(gated(g.x, u.x), gated(g.y, u.y), gated(g.z, u.z), gated(g.w, u.w)));
  }
}

template <class S>
void run(const SiluMulArgs& args, Device& device) {
  if (args.rows == 0) return;
  const SiluMul<S> a{args.rows, args.n, gate_rows<const S>(args.gate), gate_rows<const S>(args.up),
                     gate_rows<S>(args.y)};
  launch_overlapping(&silu_mul_kernel<S>, gate_shape(args.rows, args.n), device, a);
}

template <class S>
KernelRegistration vectors(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "one pass, four elements a thread",
                             .run = &run_typed<SiluMulArgs, &run<S>>});
}

const KernelRegistration registrations[] = {
    vectors<float>("silu_mul/" ASSAY_CUDA_NAME "/vectors"),
    vectors<Half>("silu_mul/" ASSAY_CUDA_NAME "/vectors_f16"),
    vectors<BFloat16>("silu_mul/" ASSAY_CUDA_NAME "/vectors_bf16"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul
