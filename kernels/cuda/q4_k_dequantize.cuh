// Values of Q4_K super-blocks.
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/q4_k.cuh"
#include "ops/q4_k_dequantize.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// y[i,p] = d sc q - dmin m. Offsets take 64 bits.
struct Q4kDequantize {
  Index rows, k;
  Q4kRows blocks;
  float* y;
  Index y_ld;
  bool vectors;  ///< rows of y start at multiples of 16 bytes
};

/// A warp per super-block. Lane l has the l-th word of codes: values at 64 (l / 8) + 4 (l mod 8), and those 32 behind.
template <Q4kFault fault>
__global__ void __launch_bounds__(256) q4k_dequantize_kernel(Q4kDequantize a) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / 8;
  const Index count = fault == Q4kFault::last_block_dropped ? a.k / q4_k::kValues : q4_k::blocks_of(a.k);
  const Index rows = fault == Q4kFault::first_row_only ? 1 : a.rows;
  const Index step = Index{gridDim.x} * (blockDim.x / 32);
  for (Index n = Index{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32; n < rows * count; n += step) {
    const Index i = n / count, at = n % count;
    const std::uint8_t* const block = q4k_block<fault>(a.blocks, i, a.k, at);
    const Q4kHeader header = q4k_header(block, false);
    const unsigned word = reinterpret_cast<const unsigned*>(block + q4_k::kCodes)[lane];
    float* const y = a.y + i * a.y_ld;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Q4kLine line = q4k_line<fault>(header, 2 * group + half);
      float v[4];
#pragma unroll
      for (int t = 0; t < 4; ++t) v[t] = q4k_value(line, word >> (8 * t + 4 * half) & 15U);
      const Index p = at * q4_k::kValues + 64 * group + 32 * half + 4 * (lane % 8);
      if (fault != Q4kFault::nibbles_interleaved && p + 4 <= a.k && (a.vectors || fault == Q4kFault::alignment_unchecked)) {
        *reinterpret_cast<float4*>(y + p) = make_float4(v[0], v[1], v[2], v[3]);
        continue;
      }
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        const Index own = fault == Q4kFault::nibbles_interleaved
                              ? at * q4_k::kValues + 64 * group + 8 * (lane % 8) + 2 * t + half : p + t;
        if (own < a.k) y[own] = v[t];
      }
    }
  }
}

/// blocks (rows, ceil(k/256)*144): bytes, rows at multiples of 4; y (rows,k): float32, row-major, any leading dimension,
/// apart. Bit for bit. 4.5625 bytes a value.
template <Q4kFault fault = Q4kFault::none>
void q4k_dequantize(const ops::Q4KDequantizeArgs& args, Device& device) {
  if (args.rows == 0 || args.k == 0) return;
  const Index y_ld = leading(args.y);
  const Q4kDequantize a{args.rows, args.k, q4k_rows(args.blocks), args.y.data(), y_ld, rows_aligned(args.y.data(), y_ld)};
  const Index warps = std::min<Index>(a.rows * q4_k::blocks_of(a.k), Index{1} << 20);
  launch(&q4k_dequantize_kernel<fault>, {dim3(blocks_for(warps, 8)), dim3(256)}, device, a);
}

template <void (*run)(const ops::Q4KDequantizeArgs&, Device&)>
Kernel q4k_dequantize_row(std::string_view id, std::string_view source, std::string_view summary) {
  Kernel row = map_kernel_row<ops::Q4KDequantizeArgs, run>("q4_k_dequantize", id, source, summary);
  row.refuse = [](const Call& call) { return refuse_bytes(ops::Q4KDequantizeArgs::unpack(call).blocks.data()); };
  return row;
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
