// Rotary position embedding by given cosines and sines, and its gradient, with CUDA: a block takes every 4096th row.
#include "kernels/cuda/rows.cuh"
#include "kernels/rope_table.hpp"
#include "ops/rope_table.hpp"
#include "ops/rope_table_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rope_table {
namespace {

/// y1 = x1 c - x2 s, y2 = x2 c + x1 s for x, y [rows, heads, 2 half]: S, heads dense; tables [places, half]: float32,
/// rows dense; positions [rows] from 0 to places - 1; y shares no memory. The gradient negates s: `sign`. Offsets take
/// 64 bits.
template <class S>
struct RopeTableDeviceCall {
  Index rows, heads, half;
  const S* x;
  Index x_row, x_head;
  const float *cosines, *sines;
  Index cosine_step, sine_step;
  const std::int32_t* positions;
  S* y;
  Index y_row, y_head;
  float sign;
  bool interleaved, aligned, tables_aligned;
};

/// The first element of a pair, then the second.
__device__ inline float2 turned(float x1, float x2, float c, float s) {
  return make_float2(x1 * c - x2 * s, x2 * c + x1 * s);
}

template <class S>
__global__ void __launch_bounds__(kRowThreads) rope_table_kernel(RopeTableDeviceCall<S> a) {
  const Index half = a.half;
  // A thread takes four elements of a head: two pairs of neighbours, or four pairs, of which it takes both ends.
  const Index items = a.interleaved ? (half + 1) / 2 : (half + 3) / 4;
  for (Index row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const float* const cosines = a.cosines + a.positions[row] * a.cosine_step;
    const float* const sines = a.sines + a.positions[row] * a.sine_step;
    for (Index item = threadIdx.x; item < items * a.heads; item += blockDim.x) {
      const Index head = item / items, i = (item % items) * (a.interleaved ? 2 : 4);
      const S* const x = a.x + row * a.x_row + head * a.x_head;
      S* const y = a.y + row * a.y_row + head * a.y_head;
      if (a.interleaved) {
        const Index next = i + 1 < half ? i + 1 : i;
        const float4 v = load4(x, 2 * i, 2 * half, a.aligned);
        const float2 p = turned(v.x, v.y, cosines[i], a.sign * sines[i]);
        const float2 q = turned(v.z, v.w, cosines[next], a.sign * sines[next]);
        store4(y, 2 * i, 2 * half, a.aligned, make_float4(p.x, p.y, q.x, q.y));
        continue;
      }
      const float4 v = load4(x, i, half, a.aligned), w = load4(x + half, i, half, a.aligned);
      const float4 c = load4(cosines, i, half, a.tables_aligned), s = load4(sines, i, half, a.tables_aligned);
      const float2 p = turned(v.x, w.x, c.x, a.sign * s.x), q = turned(v.y, w.y, c.y, a.sign * s.y),
                   r = turned(v.z, w.z, c.z, a.sign * s.z), t = turned(v.w, w.w, c.w, a.sign * s.w);
      store4(y, i, half, a.aligned, make_float4(p.x, q.x, r.x, t.x));
      store4(y + half, i, half, a.aligned, make_float4(p.y, q.y, r.y, t.y));
    }
  }
}

template <class S>
void run_rope_table(const RopeTableCall& call, Device& device) {
  if (call.rows == 0) return;
  const View<const S> x = call.from.as<const S>();
  const View<S> y = call.to.as<S>();
  const auto step = [](const auto& v, int axis) { return v.dim(axis) > 1 ? v.stride(axis) : Index{0}; };
  RopeTableDeviceCall<S> a{call.rows,
                           call.heads,
                           call.d / 2,
                           x.data(),
                           step(x, 0),
                           step(x, 1),
                           call.cosines.data(),
                           call.sines.data(),
                           table_step(call.cosines),
                           table_step(call.sines),
                           call.positions.data(),
                           y.data(),
                           step(y, 0),
                           step(y, 1),
                           call.inverse ? -1.0f : 1.0f,
                           call.interleaved,
                           false,
                           false};
  // Heads, and where pairs lie half a head apart their second halves too, start at multiples of 4 elements.
  a.aligned = (a.half % 4 == 0 || call.interleaved) && rows_aligned(x.data(), a.x_row) &&
              rows_aligned(x.data(), a.x_head) && rows_aligned(y.data(), a.y_row) && rows_aligned(y.data(), a.y_head);
  a.tables_aligned = rows_aligned(a.cosines, a.cosine_step) && rows_aligned(a.sines, a.sine_step);
  const auto blocks = static_cast<unsigned>(std::min<Index>(call.rows, 4096));
  launch(&rope_table_kernel<S>, {dim3(blocks), dim3(kRowThreads)}, device, a);
}

template <class Args, class S>
void run(const Args& args, Device& device) {
  run_rope_table<S>(rope_table_call(args), device);
}

template <class Args>
struct Rows {
  template <class S>
  static KernelRegistration of(std::string_view id) {
    return KernelRegistration({.id = id,
                               .arithmetic = {.functions = FunctionLibrary::cuda},
                               .storage = dtype_of<S>,
                               .summary = "a block a row, four elements a thread over all heads",
                               .run = &run_typed<Args, &run<Args, S>>});
  }
};

using Forward = Rows<ops::RopeTableArgs>;
using Backward = Rows<ops::RopeTableBackwardArgs>;
const KernelRegistration registrations[] = {
    Forward::of<float>("rope_table/" ASSAY_CUDA_NAME "/rows"),
    Forward::of<Half>("rope_table/" ASSAY_CUDA_NAME "/rows_f16"),
    Forward::of<BFloat16>("rope_table/" ASSAY_CUDA_NAME "/rows_bf16"),
    Backward::of<float>("rope_table_backward/" ASSAY_CUDA_NAME "/rows"),
    Backward::of<Half>("rope_table_backward/" ASSAY_CUDA_NAME "/rows_f16"),
    Backward::of<BFloat16>("rope_table_backward/" ASSAY_CUDA_NAME "/rows_bf16"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rope_table
