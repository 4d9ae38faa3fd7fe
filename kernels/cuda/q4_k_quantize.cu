// Q4_K super-blocks of values with CUDA.
#include <cfloat>

#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/q4_k.cuh"
#include "kernels/cuda/rows.cuh"
#include "ops/q4_k_quantize.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_quantize {
namespace {

/// Offsets take 64 bits.
struct Q4kQuantize {
  Index rows, k;
  const float* x;
  Index x_ld;
  std::uint8_t* blocks;
  Index blocks_ld;
  bool aligned_x;  ///< rows start at multiples of 16 bytes
};

constexpr unsigned kAllLanes = 0xffffffffU;

/// Reduces over the lanes whose numbers differ from this lane's in the bits of `from` to `to` - 1.
template <int from, int to>
__device__ inline float largest(float value) {
#pragma unroll
  for (int lanes = from; lanes < to; lanes *= 2) {
    const float other = __shfl_xor_sync(kAllLanes, value, lanes);
    value = value < other ? other : value;
  }
  return value;
}

/// Returns the code of v: a product with the reciprocal approximates it, and exact comparisons correct it.
__device__ inline unsigned code_of(float v, float step, float inverse) {
  int q = min(static_cast<int>(__fmaf_rn(v, inverse, 0.5f)), 15);
  const float two_q = static_cast<float>(2 * q), twice = v + v;
  if (q > 0 && (two_q - 1.0f) * step >= twice) --q;
  else if ((two_q + 1.0f) * step < twice) ++q;
  return static_cast<unsigned>(q);
}

/// One warp per super-block, eight neighbouring values a lane: four lanes hold a sub-block. Lane l stores the word of
/// codes that it shares with lane l ^ 4, whose values are 32 away; lane 0 stores the first four words.
__global__ void __launch_bounds__(256) q4k_quantize_kernel(Q4kQuantize a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Index count = q4_k::blocks_of(a.k);
  const Index step_of_warps = Index{gridDim.x} * (blockDim.x / 32);
  for (Index n = Index{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32; n < a.rows * count; n += step_of_warps) {
    const Index i = n / count, block = n % count, first = block * q4_k::kValues + 8 * lane;
    const float* const row = a.x + i * a.x_ld;
    const float beyond = row[a.k - 1];
    const float4 u = load4(row, first, a.k, a.aligned_x, beyond), w = load4(row, first + 4, a.k, a.aligned_x, beyond);
    float x[8] = {u.x, u.y, u.z, u.w, w.x, w.y, w.z, w.w};
    bool finite = true;
    float lowest = FLT_MAX, highest = -FLT_MAX;
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const float magnitude = fabsf(x[t]);
      finite = finite && magnitude <= FLT_MAX;
      if (magnitude < FLT_MIN) x[t] = 0.0f;
      lowest = x[t] < lowest ? x[t] : lowest;
      highest = x[t] > highest ? x[t] : highest;
    }
    finite = __all_sync(kAllLanes, finite);
    const float depth = lowest < 0.0f ? -lowest : 0.0f;
    const float low = largest<1, 4>(depth);
    highest = largest<1, 4>(highest);
    const Half dmin = q4_k::smallest_half(q4_k::kScaleReach, largest<4, 32>(low));
    unsigned minimum_code = 0, scale_code = 0, codes[2] = {};
    if (finite && dmin.bits < 0x7c00) minimum_code = q4_k::smallest_code(widen(dmin), low);
    const float minimum = finite && dmin.bits < 0x7c00 ? widen(dmin) * static_cast<float>(minimum_code) : 0.0f;
    const float reach = highest + minimum;
    const Half d = q4_k::smallest_half(q4_k::kValueReach, largest<4, 32>(reach));
    const bool defined = finite && dmin.bits < 0x7c00 && d.bits < 0x7c00;  // the same in all lanes
    if (defined) {
      scale_code = q4_k::smallest_code(15.0f * widen(d), reach);
      const float step = widen(d) * static_cast<float>(scale_code), inverse = step > 0.0f ? 1.0f / step : 0.0f;
#pragma unroll
      for (int t = 0; t < 8; ++t) codes[t / 4] |= code_of(x[t] + minimum, step, inverse) << 8 * (t % 4);
    }
    auto* const words = reinterpret_cast<unsigned*>(a.blocks + i * a.blocks_ld + block * q4_k::kBytes);
    const bool high = (lane & 4) != 0;
    const unsigned other = __shfl_xor_sync(kAllLanes, high ? codes[0] : codes[1], 4);
    words[4 + lane / 8 * 8 + 2 * (lane % 4) + (high ? 1 : 0)] = high ? other | codes[1] << 4 : codes[0] | other << 4;
    unsigned header[4] = {defined ? d.bits | unsigned{dmin.bits} << 16 : q4_k::kUndefined.bits, 0, 0, 0};
#pragma unroll
    for (int b = 0; b < 8; ++b) {
      const unsigned pair = __shfl_sync(kAllLanes, scale_code | minimum_code << 8, 4 * b);
      if (!defined) continue;
      const unsigned scale = pair & 63U, offset = pair >> 8, at = 8U * (b % 4);
      if (b < 4) {
        header[1] |= scale << at;
        header[2] |= offset << at;
      } else {
        header[3] |= ((scale & 15U) | (offset & 15U) << 4) << at;
        header[1] |= scale >> 4 << (at + 6);
        header[2] |= offset >> 4 << (at + 6);
      }
    }
    if (lane == 0) {
#pragma unroll
      for (int t = 0; t < 4; ++t) words[t] = header[t];
    }
  }
}

/// x (rows,k): float32, row-major, any leading dimension; blocks (rows, ceil(k/256)*144): bytes, rows at multiples of
/// 4, apart. Bit for bit. 4.5625 bytes a value.
void run(const ops::Q4KQuantizeArgs& args, Device& device) {
  if (args.rows == 0 || args.k == 0) return;
  const Index x_ld = leading(args.x);
  const Q4kQuantize a{args.rows,
                      args.k,
                      args.x.data(),
                      x_ld,
                      args.blocks.data(),
                      row_stride(args.blocks),
                      rows_aligned(args.x.data(), x_ld)};
  const Index warps = std::min<Index>(a.rows * q4_k::blocks_of(a.k), Index{1} << 20);
  launch(&q4k_quantize_kernel, {dim3(blocks_for(warps, 8)), dim3(256)}, device, a);
}

std::optional<std::string> refuse(const ops::Q4KQuantizeArgs& args) { return refuse_bytes(args.blocks.data()); }

const KernelRegistration warp_per_block{
    {.id = "q4_k_quantize/" ASSAY_CUDA_NAME "/warp_per_block",
     .arithmetic = {.functions = FunctionLibrary::cuda},
     .summary = "a warp per super-block, eight values a lane, minima and maxima by shuffles",
     .run = &run_typed<ops::Q4KQuantizeArgs, &run>,
     .refuse = &refuse_typed<ops::Q4KQuantizeArgs, &refuse>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_quantize
