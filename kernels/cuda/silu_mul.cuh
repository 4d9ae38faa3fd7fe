// The gate of SwiGLU and its gradients: element by element, four to a thread.
#pragma once

#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// A matrix of rows n wide, and whether its rows start at multiples of 4 elements.
template <class S>
struct GateRows {
  S* data;
  Index ld;
  bool aligned;
};
template <class S, class V>
GateRows<S> gate_rows(const V& view) {
  auto* const data = static_cast<S*>(view.data());
  return {data, row_stride(view), rows_aligned(data, row_stride(view))};
}

/// y[i,j] = gate[i,j] sigmoid(gate[i,j]) up[i,j] for gate, up, y (rows,n): S, rows dense; y shares no memory with the others.
/// Offsets take 64 bits.
template <class S>
struct SiluMul {
  Index rows, n;
  GateRows<const S> gate, up;
  GateRows<S> y;
};

/// dgate = dy up (s + gate s (1 - s)), dup = dy gate s, s = sigmoid(gate); float32, rows dense.
struct SiluMulBackward {
  Index rows, n;
  GateRows<const float> gate, up, dy;
  GateRows<float> dgate, dup;
};

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class GateFault { none, tail_unwritten, exchanged, first_block_only, no_up, dup_unwritten, half_precision };

/// sigmoid(x), 1 - sigmoid(x) by exp(-|x|), which never overflows.
__device__ inline float2 sigmoid_and_rest(float x) {
  const float power = expf(-fabsf(x)), larger = 1.0f / (1.0f + power), smaller = power * larger;
  return x < 0.0f ? make_float2(smaller, larger) : make_float2(larger, smaller);
}

__device__ inline float rounded_to_half(float x) {
  Half half;
  store(half, x);
  return load(half);
}

template <GateFault fault>
__device__ inline float gated(float gate, float up) {
  if constexpr (fault == GateFault::exchanged) return up * sigmoid_and_rest(up).x * gate;
  const float s = sigmoid_and_rest(gate).x;
  return gate * (fault == GateFault::half_precision ? rounded_to_half(s) : s) * up;
}

template <class S, GateFault fault>
__global__ void __launch_bounds__(kRowThreads) silu_mul_kernel(SiluMul<S> a) {
  const Index quads = fault == GateFault::tail_unwritten ? a.n / 4 : (a.n + 3) / 4;
  const Index step = fault == GateFault::first_block_only ? a.rows * quads : Index{gridDim.x} * blockDim.x;
  for (Index q = Index{blockIdx.x} * blockDim.x + threadIdx.x; q < a.rows * quads; q += step) {
    const Index row = q / quads, j = q % quads * 4;
    const float4 g = load4(a.gate.data + row * a.gate.ld, j, a.n, a.gate.aligned);
    const float4 u = load4(a.up.data + row * a.up.ld, j, a.n, a.up.aligned);
    store4(a.y.data + row * a.y.ld, j, a.n, a.y.aligned,
           make_float4(gated<fault>(g.x, u.x), gated<fault>(g.y, u.y), gated<fault>(g.z, u.z), gated<fault>(g.w, u.w)));
  }
}

/// dgate and dup of one element.
template <GateFault fault>
__device__ inline float2 gate_gradients(float gate, float up, float dy) {
  const float2 s = sigmoid_and_rest(gate);
  const float silu = gate * s.x, slope = s.x + silu * s.y;
  return make_float2(fault == GateFault::no_up ? dy * slope : dy * up * slope, dy * silu);
}

template <GateFault fault>
__global__ void __launch_bounds__(kRowThreads) silu_mul_backward_kernel(SiluMulBackward a) {
  const Index quads = fault == GateFault::tail_unwritten ? a.n / 4 : (a.n + 3) / 4;
  for (Index q = Index{blockIdx.x} * blockDim.x + threadIdx.x; q < a.rows * quads; q += Index{gridDim.x} * blockDim.x) {
    const Index row = q / quads, j = q % quads * 4;
    const float4 g = load4(a.gate.data + row * a.gate.ld, j, a.n, a.gate.aligned);
    const float4 u = load4(a.up.data + row * a.up.ld, j, a.n, a.up.aligned);
    const float4 d = load4(a.dy.data + row * a.dy.ld, j, a.n, a.dy.aligned);
    const float2 x = gate_gradients<fault>(g.x, u.x, d.x), y = gate_gradients<fault>(g.y, u.y, d.y),
                 z = gate_gradients<fault>(g.z, u.z, d.z), w = gate_gradients<fault>(g.w, u.w, d.w);
    store4(a.dgate.data + row * a.dgate.ld, j, a.n, a.dgate.aligned, make_float4(x.x, y.x, z.x, w.x));
    if (fault != GateFault::dup_unwritten)
      store4(a.dup.data + row * a.dup.ld, j, a.n, a.dup.aligned, make_float4(x.y, y.y, z.y, w.y));
  }
}

/// Blocks for so many elements; each thread goes on by the whole grid.
inline LaunchShape gate_shape(Index rows, Index n) {
  return {dim3(static_cast<unsigned>(std::min<Index>(blocks_for(rows * ((n + 3) / 4), kRowThreads), 65536))), dim3(kRowThreads)};
}

/// Args: SiluMulArgs.
template <class S, GateFault fault = GateFault::none, class Args>
void run_silu_mul(const Args& args, Device& device) {
  if (args.rows == 0) return;
  const SiluMul<S> a{args.rows, args.n, gate_rows<const S>(args.gate), gate_rows<const S>(args.up), gate_rows<S>(args.y)};
  LaunchShape shape = gate_shape(args.rows, args.n);
  if (fault == GateFault::first_block_only) shape.grid.x = 1;
  launch(&silu_mul_kernel<S, fault>, shape, device, a);
}

/// Args: SiluMulBackwardArgs.
template <GateFault fault = GateFault::none, class Args>
void run_silu_mul_backward(const Args& args, Device& device) {
  if (args.rows == 0) return;
  const SiluMulBackward a{args.rows,
                          args.n,
                          gate_rows<const float>(args.gate),
                          gate_rows<const float>(args.up),
                          gate_rows<const float>(args.dy),
                          gate_rows<float>(args.dgate),
                          gate_rows<float>(args.dup)};
  launch(&silu_mul_backward_kernel<fault>, gate_shape(args.rows, args.n), device, a);
}

/// The registry's rows. Args: SiluMulArgs, SiluMulBackwardArgs.
template <class Args, class S, GateFault fault = GateFault::none>
Kernel silu_mul_row(std::string_view id) {
  return {.op = "silu_mul",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda},
          .storage = dtype_of<S>,
          .source = "kernels/cuda/silu_mul.cuh",
          .summary = "one pass, four elements a thread",
          .run = [](const Call& call, Device& device) { run_silu_mul<S, fault>(Args::unpack(call), device); }};
}
template <class Args, GateFault fault = GateFault::none>
Kernel silu_mul_backward_row(std::string_view id) {
  return {.op = "silu_mul_backward",
          .id = id,
          .backend = kCudaBackend,
          .arithmetic = {.functions = FunctionLibrary::cuda},
          .source = "kernels/cuda/silu_mul.cuh",
          .summary = "both gradients in one pass, four elements a thread",
          .run = [](const Call& call, Device& device) { run_silu_mul_backward<fault>(Args::unpack(call), device); }};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
