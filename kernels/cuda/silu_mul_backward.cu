// Gradients of the gate of SwiGLU: element by element, four to a thread.
#include "kernels/cuda/silu_mul.cuh"
#include "ops/silu_mul_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul_backward {
namespace {

/// dgate = dy up (s + gate s (1 - s)), dup = dy gate s, s = sigmoid(gate); S, rows dense.
template <class S>
struct SiluMulBackward {
  Index rows, n;
  GateRows<const S> gate, up, dy;
  GateRows<S> dgate, dup;
};

/// dgate and dup of one element.
__device__ inline float2 gate_gradients(float gate, float up, float dy) {
  const float2 s = sigmoid_and_rest(gate);
  const float silu = gate * s.x, slope = s.x + silu * s.y;
  return make_float2(dy * up * slope, dy * silu);
}

template <class S>
__global__ void __launch_bounds__(kRowThreads) silu_mul_backward_kernel(SiluMulBackward<S> a) {
  const Index quads = (a.n + 3) / 4;
  for (Index q = Index{blockIdx.x} * blockDim.x + threadIdx.x; q < a.rows * quads; q += Index{gridDim.x} * blockDim.x) {
    const Index row = q / quads, j = q % quads * 4;
    const float4 g = load4(a.gate.data + row * a.gate.ld, j, a.n, a.gate.aligned);
    const float4 u = load4(a.up.data + row * a.up.ld, j, a.n, a.up.aligned);
    const float4 d = load4(a.dy.data + row * a.dy.ld, j, a.n, a.dy.aligned);
    const float2 x = gate_gradients(g.x, u.x, d.x), y = gate_gradients(g.y, u.y, d.y),
                 z = gate_gradients(g.z, u.z, d.z), w = gate_gradients(g.w, u.w, d.w);
    store4(a.dgate.data + row * a.dgate.ld, j, a.n, a.dgate.aligned, make_float4(x.x, y.x, z.x, w.x));
    store4(a.dup.data + row * a.dup.ld, j, a.n, a.dup.aligned, make_float4(x.y, y.y, z.y, w.y));
  }
}

template <class S>
void run(const ops::SiluMulBackwardArgs& args, Device& device) {
  if (args.rows == 0) return;
  const SiluMulBackward<S> a{args.rows,
                             args.n,
                             gate_rows<const S>(args.gate),
                             gate_rows<const S>(args.up),
                             gate_rows<const S>(args.dy),
                             gate_rows<S>(args.dgate),
                             gate_rows<S>(args.dup)};
  launch(&silu_mul_backward_kernel<S>, gate_shape(args.rows, args.n), device, a);
}

template <class S>
KernelRegistration vectors(std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::cuda},
                             .storage = dtype_of<S>,
                             .summary = "both gradients in one pass, four elements a thread",
                             .run = &run_typed<ops::SiluMulBackwardArgs, &run<S>>});
}

const KernelRegistration registrations[] = {
    vectors<float>("silu_mul_backward/" ASSAY_CUDA_NAME "/vectors"),
    vectors<Half>("silu_mul_backward/" ASSAY_CUDA_NAME "/vectors_f16"),
    vectors<BFloat16>("silu_mul_backward/" ASSAY_CUDA_NAME "/vectors_bf16"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_silu_mul_backward
