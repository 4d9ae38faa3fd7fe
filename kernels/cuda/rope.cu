// Rotary position embedding and its gradient, the rotation back, with CUDA: a block takes every 4096th row, its cosines
// and sines once for all heads; few rows are shared out to several blocks.
#include "kernels/cuda/rows.cuh"
#include "kernels/rope.hpp"
#include "ops/rope.hpp"
#include "ops/rope_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_rope {
namespace {

constexpr int kMaxPairs = 128;

/// Frequencies travel with the launch, in constant memory: no upload, nothing kept between calls.
struct RopeTable {
  RopeFrequency at[kMaxPairs];
};

/// y1 = x1 cos a - x2 sin a, y2 = x2 cos a + x1 sin a for x, y [rows, heads, d]: S, heads dense; positions [rows] from 0
/// to 2^20 - 1; no memory is shared.
/// Pairs and angles: kernels/rope.hpp. Offsets take 64 bits.
template <class S>
struct RopeDeviceCall {
  Index rows, heads, half;
  const S* x;
  Index x_row, x_head;
  const std::int32_t* positions;
  S* y;
  Index y_row, y_head;
  bool interleaved, float32_angle, inverse, aligned;
};

template <class S>
__global__ void __launch_bounds__(kRowThreads) rope_kernel(RopeDeviceCall<S> a, RopeTable table) {
  ASSAY_SHARED(float, cosine, [kMaxPairs + 4]);
  ASSAY_SHARED(float, sine, [kMaxPairs + 4]);
  const int own = static_cast<int>(threadIdx.x);
  const Index half = a.half;
  // A thread takes four elements of a head: two pairs of neighbours, or four pairs, of which it takes both ends.
  const Index items = a.interleaved ? (half + 1) / 2 : (half + 3) / 4;
  let_next_begin();
  for (Index row = blockIdx.x; row < a.rows; row += gridDim.x) {
    if (own < kMaxPairs + 4) {
      CosSin r{1.0f, 0.0f};
      // No kernel writes positions, so they are read before the previous one has ended.
      if (own < half) r = rope_cos_sin(table.at[own], a.positions[row], a.float32_angle);
      cosine[own] = r.cos;
      sine[own] = a.inverse ? -r.sin : r.sin;
    }
    __syncthreads();
    if (row == blockIdx.x) await_previous();
    for (Index item = Index{blockIdx.y} * blockDim.x + own; item < items * a.heads; item += gridDim.y * blockDim.x) {
      const Index head = item / items, i = (item % items) * (a.interleaved ? 2 : 4);
      const S* const x = a.x + row * a.x_row + head * a.x_head;
      S* const y = a.y + row * a.y_row + head * a.y_head;
      if (a.interleaved) {
        const float4 v = load4(x, 2 * i, 2 * half, a.aligned);
        store4(y, 2 * i, 2 * half, a.aligned,
               make_float4(v.x * cosine[i] - v.y * sine[i], v.y * cosine[i] + v.x * sine[i],
                           v.z * cosine[i + 1] - v.w * sine[i + 1], v.w * cosine[i + 1] + v.z * sine[i + 1]));
        continue;
      }
      const float4 v = load4(x, i, half, a.aligned), w = load4(x + half, i, half, a.aligned);
      store4(y, i, half, a.aligned,
             make_float4(v.x * cosine[i] - w.x * sine[i], v.y * cosine[i + 1] - w.y * sine[i + 1],
                         v.z * cosine[i + 2] - w.z * sine[i + 2], v.w * cosine[i + 3] - w.w * sine[i + 3]));
      store4(y + half, i, half, a.aligned,
             make_float4(w.x * cosine[i] + v.x * sine[i], w.y * cosine[i + 1] + v.y * sine[i + 1],
                         w.z * cosine[i + 2] + v.z * sine[i + 2], w.w * cosine[i + 3] + v.w * sine[i + 3]));
    }
    __syncthreads();  // before the next row's cosines
  }
}

template <class S>
void run_rope(const RopeCall& call, Device& device) {
  if (call.rows == 0) return;
  const View<const S> x = call.from.as<const S>();
  const View<S> y = call.to.as<S>();
  RopeTable table{};
  const std::vector<RopeFrequency>& frequencies = rope_frequencies(call.theta, call.d, call.float32_angle);
  std::copy(frequencies.begin(), frequencies.end(), table.at);
  const auto step = [](const auto& v, int axis) { return v.dim(axis) > 1 ? v.stride(axis) : Index{0}; };
  RopeDeviceCall<S> a{
      call.rows, call.heads, call.d / 2, x.data(),         step(x, 0),         step(x, 1),   call.positions.data(),
      y.data(),  step(y, 0), step(y, 1), call.interleaved, call.float32_angle, call.inverse, false};
  // Heads, and where pairs lie half a head apart their second halves too, start at multiples of 4 elements.
  a.aligned = (a.half % 4 == 0 || call.interleaved) && rows_aligned(x.data(), a.x_row) &&
              rows_aligned(x.data(), a.x_head) && rows_aligned(y.data(), a.y_row) && rows_aligned(y.data(), a.y_head);
  const auto blocks = static_cast<unsigned>(std::min<Index>(call.rows, 4096));
  constexpr Index kFewRows = 32;
  const unsigned of_row = call.rows <= kFewRows ? blocks_for(call.heads * a.half, 2 * kRowThreads) : 1;
  launch_overlapping(&rope_kernel<S>, {dim3(blocks, of_row), dim3(kRowThreads)}, device, a, table);
}

template <class Args, class S>
void run(const Args& args, Device& device) {
  run_rope<S>(rope_call(args), device);
}

template <class Args>
struct Rows {
  template <class S>
  static KernelRegistration of(std::string_view id) {
    return KernelRegistration(
        {.id = id,
         .arithmetic = {.functions = FunctionLibrary::octant},
         .storage = dtype_of<S>,
         .summary = "a block a row: cosines and sines once, then four elements a thread over all heads",
         .run = &run_typed<Args, &run<Args, S>>});
  }
};

using Forward = Rows<ops::RopeArgs>;
using Backward = Rows<ops::RopeBackwardArgs>;
const KernelRegistration registrations[] = {
    Forward::of<float>("rope/" ASSAY_CUDA_NAME "/rows"),
    Forward::of<Half>("rope/" ASSAY_CUDA_NAME "/rows_f16"),
    Forward::of<BFloat16>("rope/" ASSAY_CUDA_NAME "/rows_bf16"),
    Backward::of<float>("rope_backward/" ASSAY_CUDA_NAME "/rows"),
    Backward::of<Half>("rope_backward/" ASSAY_CUDA_NAME "/rows_f16"),
    Backward::of<BFloat16>("rope_backward/" ASSAY_CUDA_NAME "/rows_bf16"),
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_rope
