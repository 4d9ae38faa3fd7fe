// absmax = code[q]·absmax2 + offset.
#pragma once

#include <algorithm>

#include "kernels/cuda/nf4_absmax.cuh"
#include "ops/nf4_absmax_dequantize.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

struct AbsmaxDecoding {
  AbsmaxRows<float> absmax;
  const std::uint8_t* codes;
  const float* absmax2;
  const float* offset;
};

inline AbsmaxDecoding absmax_decoding(const ops::Nf4AbsmaxDequantizeArgs& args) {
  return {absmax_rows(args.absmax), args.codes.data(), args.absmax2.data(), args.offset.data()};
}

/// What element i is added to and multiplied with.
template <AbsmaxFault fault>
__device__ inline float decode(const AbsmaxDecoding& a, Index i, float entry) {
  using F = AbsmaxFault;
  Index group = i / (fault == F::group_of_64 ? 64 : kAbsmaxGroup);
  if constexpr (fault == F::groups_per_row)
    group = i / a.absmax.width * absmax_groups(a.absmax.width) + i % a.absmax.width / kAbsmaxGroup;
  if constexpr (fault == F::group_of_64 || fault == F::groups_per_row) group = min(group, absmax_groups(a.absmax.count) - 1);
  const float offset = fault == F::offset_left_out ? 0.0f : a.offset[0];
  float scale = a.absmax2[group];
  if constexpr (fault == F::truncated) scale = __uint_as_float(__float_as_uint(scale) & 0xffffe000U);
  return __fmaf_rn(entry, scale, offset);
}

/// One thread an element, its entry computed.
template <AbsmaxFault fault>
__global__ void __launch_bounds__(256) absmax_elementwise_kernel(AbsmaxDecoding a) {
  for (Index i = Index{blockIdx.x} * 256 + threadIdx.x; i < a.absmax.count; i += Index{gridDim.x} * 256)
    a.absmax.at<fault>(i) = decode<fault>(a, i, entry_of<fault>(a.codes[i]));
}

/// Four elements a thread, from a word to 16 bytes; they share a group. `aligned`: absmax is dense and starts at a multiple of
/// 16 bytes.
template <bool aligned, AbsmaxFault fault>
__global__ void __launch_bounds__(256) absmax_vectors_kernel(AbsmaxDecoding a) {
  ASSAY_SHARED(float, table, [256]);
  table[threadIdx.x] = entry_of<fault>(threadIdx.x);
  if constexpr (fault != AbsmaxFault::no_barrier) __syncthreads();
  const Index count = fault == AbsmaxFault::tail_unwritten ? a.absmax.count / 4 * 4 : a.absmax.count;
  for (Index i = (Index{blockIdx.x} * 256 + threadIdx.x) * 4; i < count; i += Index{gridDim.x} * 1024) {
    const unsigned word = *reinterpret_cast<const unsigned*>(a.codes + i);
    const float v[4] = {decode<fault>(a, i, table[word & 255]), decode<fault>(a, i, table[word >> 8 & 255]),
                        decode<fault>(a, i, table[word >> 16 & 255]), decode<fault>(a, i, table[word >> 24])};
    if (aligned && i + 4 <= count) {
      *reinterpret_cast<float4*>(a.absmax.data + i) = make_float4(v[0], v[1], v[2], v[3]);
      continue;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (i + e < count) a.absmax.at<fault>(i + e) = v[e];
  }
}

template <AbsmaxFault fault = AbsmaxFault::none>
void absmax_elementwise(const ops::Nf4AbsmaxDequantizeArgs& args, Device& device) {
  const AbsmaxDecoding a = absmax_decoding(args);
  if (a.absmax.count == 0) return;
  const dim3 grid(static_cast<unsigned>(std::min<Index>((a.absmax.count + 255) / 256, 1 << 20)));
  launch(&absmax_elementwise_kernel<fault>, {grid, dim3(256)}, device, a);
}

/// codes (256 g), absmax2 (g), offset (1), g = ceil(n b / 256): dense; absmax (n, b): row-major; it shares no memory. Fused:
/// one rounding. Cost 5 n b bytes.
template <AbsmaxFault fault = AbsmaxFault::none>
void absmax_vectors(const ops::Nf4AbsmaxDequantizeArgs& args, Device& device) {
  const AbsmaxDecoding a = absmax_decoding(args);
  if (a.absmax.count == 0) return;
  const dim3 grid(static_cast<unsigned>(std::min<Index>((a.absmax.count + 1023) / 1024, 4096)));
  const bool aligned = args.absmax.contiguous() && reinterpret_cast<std::uintptr_t>(a.absmax.data) % 16 == 0;
  launch(aligned ? &absmax_vectors_kernel<true, fault> : &absmax_vectors_kernel<false, fault>, {grid, dim3(256)}, device, a);
}

/// The registry's row; the caller adds what differs.
template <void (*run)(const ops::Nf4AbsmaxDequantizeArgs&, Device&)>
Kernel absmax_dequantize_kernel(std::string_view id, std::string_view summary) {
  return {.op = "nf4_absmax_dequantize",
          .id = id,
          .backend = kCudaBackend,
          .source = "kernels/cuda/nf4_absmax_dequantize.cuh",
          .summary = summary,
          .run = &run_typed<ops::Nf4AbsmaxDequantizeArgs, run>};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
