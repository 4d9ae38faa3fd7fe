// q = the NF4 code of x / absmax.
#pragma once

#include "kernels/cuda/nf4.cuh"
#include "ops/nf4_quantize.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// Element (j, p) of x lies at x + j * x_ld + p; codes and absmax as in Nf4Matrix. Offsets take 64 bits.
struct Nf4Encoding {
  Index n, k;
  const float* x;
  Index x_ld;
  std::uint8_t* codes;
  Index codes_ld;
  float* absmax;
  Index absmax_ld;
  float midpoints[15];
};

inline Nf4Encoding nf4_encoding(const ops::Nf4QuantizeArgs& args) {
  Nf4Encoding e{args.n, args.k, args.x.data(), nf4_leading(args.x), args.codes.data(), nf4_leading(args.codes),
                args.absmax.data(), nf4_leading(args.absmax), {}};
  std::ranges::copy(kNf4Midpoints, e.midpoints);
  return e;
}

namespace nf4_quantize_detail {

constexpr unsigned kInfinity = 0x7f800000U, kNan = 0x7fc00000U;

/// The magnitude of x: those of floats order like integers, NaN above infinity above all others.
__device__ inline unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffU; }

/// The scale of a block from the largest magnitude in it.
__device__ inline float scale_from(unsigned most) {
  return most >= kInfinity ? __uint_as_float(kNan) : nf4_scale(__uint_as_float(most));
}

template <Nf4Fault fault>
__device__ inline unsigned code_of(const Nf4Encoding& e, float x, float scale) {
  if (fault != Nf4Fault::zero_divided && !(scale > 0)) return kNf4Zero;
  unsigned above = 0;
#pragma unroll
  for (int i = 0; i < 15; ++i) {
    if constexpr (fault == Nf4Fault::quotient_compared || fault == Nf4Fault::zero_divided)
      above += x * (1.0f / scale) > e.midpoints[i] ? 1U : 0U;
    else if constexpr (fault == Nf4Fault::tie_goes_up) above += x >= __fmul_rn(e.midpoints[i], scale) ? 1U : 0U;
    else above += x > __fmul_rn(e.midpoints[i], scale) ? 1U : 0U;
  }
  return above;
}

}  // namespace nf4_quantize_detail

/// One thread a block of 64.
template <Nf4Fault fault>
__global__ void __launch_bounds__(256) nf4_thread_per_block_kernel(Nf4Encoding e) {
  namespace detail = nf4_quantize_detail;
  const Index b = Index{blockIdx.x} * 256 + threadIdx.x, first = b * kNf4Block;
  if (first >= e.k) return;
  for (Index j = blockIdx.y; j < e.n; j += gridDim.y) {
    const float* const x = e.x + j * e.x_ld;
    unsigned most = 0;
    const Index end = min(e.k, first + kNf4Block);
    for (Index p = first; p < end; ++p) most = max(most, detail::magnitude(x[p]));
    const float scale = detail::scale_from(most);
    e.absmax[j * e.absmax_ld + b] = scale;
    for (Index p = first; p < first + kNf4Block; p += 2) {
      const unsigned high = p < end ? detail::code_of<fault>(e, x[p], scale) : kNf4Zero;
      const unsigned low = p + 1 < end ? detail::code_of<fault>(e, x[p + 1], scale) : kNf4Zero;
      e.codes[j * e.codes_ld + p / 2] = static_cast<std::uint8_t>(high << 4 | low);
    }
  }
}

/// One warp a block of 64, two elements and a byte of codes a lane; the maximum by shuffles, in which all lanes take part.
template <bool aligned, Nf4Fault fault>
__global__ void __launch_bounds__(256) nf4_warp_per_block_kernel(Nf4Encoding e) {
  namespace detail = nf4_quantize_detail;
  const Index blocks = nf4_blocks(e.k), all = e.n * blocks, lane = threadIdx.x % 32;
  for (Index i = (Index{blockIdx.x} * 256 + threadIdx.x) / 32; i < all; i += Index{gridDim.x} * 8) {
    const Index j = i / blocks, b = i % blocks, p = b * kNf4Block + 2 * lane;
    const float* x = e.x + j * e.x_ld + p;
    if constexpr (fault == Nf4Fault::early_return)
      if (p >= e.k) return;
    float2 v = make_float2(0.0f, 0.0f);
    if (aligned && p + 2 <= e.k) v = *reinterpret_cast<const float2*>(x);
    else if (p < e.k) v = make_float2(x[0], p + 1 < e.k ? x[1] : 0.0f);
    unsigned most = max(detail::magnitude(v.x), detail::magnitude(v.y));
    if constexpr (fault == Nf4Fault::nan_swallowed) most = __float_as_uint(fmaxf(fabsf(v.x), fabsf(v.y)));
#pragma unroll
    for (int step = fault == Nf4Fault::half_the_lanes_lost ? 8 : 16; step > 0; step /= 2) {
      const unsigned other = __shfl_xor_sync(0xffffffffU, most, step);
      if constexpr (fault == Nf4Fault::nan_swallowed)
        most = __float_as_uint(fmaxf(__uint_as_float(most), __uint_as_float(other)));
      else most = max(most, other);
    }
    const float scale = fault == Nf4Fault::nan_swallowed ? nf4_scale(__uint_as_float(most)) : detail::scale_from(most);
    const unsigned high = detail::code_of<fault>(e, v.x, scale), low = detail::code_of<fault>(e, v.y, scale);
    unsigned pair = fault == Nf4Fault::nibbles_swapped ? low << 4 | high : high << 4 | low;
    if constexpr (fault == Nf4Fault::padding_zero) pair = p >= e.k ? 0 : p + 1 >= e.k ? pair & 0xf0 : pair;
    e.codes[j * e.codes_ld + p / 2] = static_cast<std::uint8_t>(pair);
    if (lane == 0) e.absmax[j * e.absmax_ld + b] = scale;
  }
}

template <Nf4Fault fault = Nf4Fault::none>
void nf4_thread_per_block(const ops::Nf4QuantizeArgs& args, Device& device) {
  if (args.n == 0 || args.k == 0) return;
  const dim3 grid(blocks_for(nf4_blocks(args.k), 256), static_cast<unsigned>(std::min<Index>(args.n, 65535)));
  launch(&nf4_thread_per_block_kernel<fault>, {grid, dim3(256)}, device, nf4_encoding(args));
}

/// x (n, k), codes (n, 32 b), absmax (n, b), b = ceil(k/64): row-major; they share no memory. Cost 4.6 n k bytes.
template <Nf4Fault fault = Nf4Fault::none>
void nf4_warp_per_block(const ops::Nf4QuantizeArgs& args, Device& device) {
  if (args.n == 0 || args.k == 0) return;
  const Index warps = args.n * nf4_blocks(args.k), ld = nf4_leading(args.x);
  const dim3 grid(static_cast<unsigned>(std::min<Index>((warps + 7) / 8, 1 << 20)));
  const bool aligned = reinterpret_cast<std::uintptr_t>(args.x.data()) % 8 == 0 && (args.n == 1 || ld % 2 == 0);
  launch(aligned ? &nf4_warp_per_block_kernel<true, fault> : &nf4_warp_per_block_kernel<false, fault>, {grid, dim3(256)},
         device, nf4_encoding(args));
}

/// The registry's row; the caller adds what differs.
template <void (*run)(const ops::Nf4QuantizeArgs&, Device&)>
Kernel nf4_quantize_kernel(std::string_view id, std::string_view summary) {
  return {.op = "nf4_quantize",
          .id = id,
          .backend = kCudaBackend,
          .source = "kernels/cuda/nf4_quantize.cuh",
          .summary = summary,
          .run = &run_typed<ops::Nf4QuantizeArgs, run>};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
