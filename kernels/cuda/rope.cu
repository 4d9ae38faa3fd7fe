// Rotary position embedding and its gradient, the rotation back, with CUDA: a block takes several rows at a time, their
// cosines and sines once for all heads; few rows are shared out to several blocks.
#include "kernels/cuda/packs.cuh"
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
/// to 2^20 - 1; no memory is shared. A block takes `group` rows at a time.
/// Pairs and angles: kernels/rope.hpp. Offsets take 64 bits.
template <class S>
struct RopeDeviceCall {
  Index rows;
  int heads, half, group;
  const S* x;
  Index x_row, x_head;
  const std::int32_t* positions;
  S* y;
  Index y_row, y_head;
  bool interleaved, float32_angle, inverse;
};

/// Returns the pairs of a row with those that fill its last pack.
template <class S>
__host__ __device__ inline int padded_pairs(int half) {
  return (half + kPack<S> - 1) / kPack<S> * kPack<S>;
}

/// Rotates pairs whose first elements are in v, whose second ones are in w.
template <class S>
__device__ inline void rotate_ends(Elements<S>& v, Elements<S>& w, const Elements<S>& c, const Elements<S>& s) {
#pragma unroll
  for (int e = 0; e < kPack<S>; ++e) {
    const float x1 = v.at[e], x2 = w.at[e];
    v.at[e] = x1 * c.at[e] - x2 * s.at[e];
    w.at[e] = x2 * c.at[e] + x1 * s.at[e];
  }
}
/// Rotates pairs of neighbours, the first half of them in v, the second in w.
template <class S>
__device__ inline void rotate_neighbours(Elements<S>& v, Elements<S>& w, const Elements<S>& c, const Elements<S>& s) {
  const auto rotate = [](float* pair, float cosine, float sine) {
    const float x1 = pair[0], x2 = pair[1];
    pair[0] = x1 * cosine - x2 * sine;
    pair[1] = x2 * cosine + x1 * sine;
  };
#pragma unroll
  for (int e = 0; e < kPack<S>; e += 2) {
    rotate(v.at + e, c.at[e / 2], s.at[e / 2]);
    rotate(w.at + e, c.at[(kPack<S> + e) / 2], s.at[(kPack<S> + e) / 2]);
  }
}

/// A thread takes as many pairs of a head as a pack has elements: two packs, of neighbours or of both ends of its pairs.
template <class S, bool whole>
__global__ void __launch_bounds__(kRowThreads) rope_kernel(RopeDeviceCall<S> a, RopeTable table) {
  constexpr int kHeads = 2;  // of which a thread loads its packs together
  ASSAY_SHARED(float4, cosine, [kRowThreads / 4]);
  ASSAY_SHARED(float4, sine, [kRowThreads / 4]);
  const int own = static_cast<int>(threadIdx.x), pairs = padded_pairs<S>(a.half);
  const int own_row = own / pairs, own_pair = own % pairs;
  const int of_head = pairs / kPack<S>, pair = own % of_head * kPack<S>, step = kRowThreads / of_head;
  // Places of a thread's first and second pack in a head, and where the elements of each end.
  const int first = a.interleaved ? 2 * pair : pair, second = a.interleaved ? first + kPack<S> : a.half + pair;
  const int first_end = a.interleaved ? 2 * a.half : a.half, second_end = 2 * a.half;
  const Index row = Index{blockIdx.x} * a.group;
  let_next_begin();
  const int rows = static_cast<int>(min(Index{a.group}, a.rows - row));
  if (own_row < rows) {
    CosSin r{1.0f, 0.0f};
    // No kernel writes positions, so they are read before the previous one has ended.
    if (own_pair < a.half) r = rope_cos_sin(table.at[own_pair], a.positions[row + own_row], a.float32_angle);
    reinterpret_cast<float*>(cosine)[own] = r.cos;
    reinterpret_cast<float*>(sine)[own] = a.inverse ? -r.sin : r.sin;
  }
  __syncthreads();
  await_previous();
  const int heads = own < step * of_head ? rows * a.heads : 0;  // of all rows; threads beyond whole heads rest
  for (int head = static_cast<int>(blockIdx.y) * kHeads * step + own / of_head; head < heads;
       head += static_cast<int>(gridDim.y) * kHeads * step) {
    Pack<S> one[kHeads], other[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const int at = head + h * step;
      const S* const x = a.x + (row + at / a.heads) * a.x_row + at % a.heads * a.x_head;
      one[h] = load_pack<whole>(x, first, at < heads ? first_end : 0);
      other[h] = load_pack<whole>(x, second, at < heads ? second_end : 0);
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const int at = head + h * step;
      if (at >= heads) break;
      const int table_at = at / a.heads * pairs + pair;
      const Elements<S> c = load_floats<S, true>(reinterpret_cast<const float*>(cosine), table_at, kRowThreads);
      const Elements<S> s = load_floats<S, true>(reinterpret_cast<const float*>(sine), table_at, kRowThreads);
      Elements<S> v = widened(one[h]), w = widened(other[h]);
      if (a.interleaved) rotate_neighbours<S>(v, w, c, s);
      else rotate_ends<S>(v, w, c, s);
      S* const y = a.y + (row + at / a.heads) * a.y_row + at % a.heads * a.y_head;
      store_pack<whole>(y, first, first_end, v);
      store_pack<whole>(y, second, second_end, w);
    }
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
  constexpr Index kFewRows = 32;
  const int half = static_cast<int>(call.d / 2),
            group = call.rows <= kFewRows ? 1 : kRowThreads / padded_pairs<S>(half);
  const RopeDeviceCall<S> a{call.rows,
                            static_cast<int>(call.heads),
                            half,
                            group,
                            x.data(),
                            step(x, 0),
                            step(x, 1),
                            call.positions.data(),
                            y.data(),
                            step(y, 0),
                            step(y, 1),
                            call.interleaved,
                            call.float32_angle,
                            call.inverse};
  const auto packs = [&](const S* data, Index row, Index head) {
    return packed(data, row, call.interleaved ? call.d : call.d / 2) && head % kPack<S> == 0;
  };
  const bool whole = packs(a.x, a.x_row, a.x_head) && packs(a.y, a.y_row, a.y_head);
  const unsigned of_row = call.rows <= kFewRows ? blocks_for(call.heads * half, 2 * kPack<S> * kRowThreads) : 1;
  launch_overlapping(whole ? &rope_kernel<S, true> : &rope_kernel<S, false>,
                     {dim3(blocks_for(call.rows, group), of_row), dim3(kRowThreads)}, device, a, table);
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
         .summary = "a block for some rows: cosines and sines once, then two packs of 16 bytes a thread over all heads",
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
