// Values of Q4_K super-blocks with CUDA.
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/q4_k.cuh"
#include "ops/q4_k_dequantize.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_dequantize {
namespace {

/// y[i,p] = d sc q - dmin m. Offsets take 64 bits.
struct Q4kDequantize {
  Index rows, k;
  Q4kRows blocks;
  float* y;
  Index y_ld;
  bool vectors;  ///< rows of y start at multiples of 16 bytes
};

/// One warp per super-block. Lane l takes the l-th word of codes: values from 64 (l / 8) + 4 (l mod 8) and from 32
/// further on.
__global__ void __launch_bounds__(256) q4k_dequantize_kernel(Q4kDequantize a) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / 8;
  const Index count = q4_k::blocks_of(a.k);
  const Index step = Index{gridDim.x} * (blockDim.x / 32);
  for (Index n = Index{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32; n < a.rows * count; n += step) {
    const Index i = n / count, at = n % count;
    const std::uint8_t* const block = q4k_block(a.blocks, i, at);
    const Q4kHeader header = q4k_header(block, false);
    const unsigned word = reinterpret_cast<const unsigned*>(block + q4_k::kCodes)[lane];
    float* const y = a.y + i * a.y_ld;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Q4kLine line = q4k_line(header, 2 * group + half);
      float v[4];
#pragma unroll
      for (int t = 0; t < 4; ++t) v[t] = q4k_value(line, word >> (8 * t + 4 * half) & 15U);
      const Index p = at * q4_k::kValues + 64 * group + 32 * half + 4 * (lane % 8);
      if (p + 4 <= a.k && a.vectors) {
        *reinterpret_cast<float4*>(y + p) = make_float4(v[0], v[1], v[2], v[3]);
        continue;
      }
#pragma unroll
      for (int t = 0; t < 4; ++t)
        if (p + t < a.k) y[p + t] = v[t];
    }
  }
}

/// blocks (rows, ceil(k/256)*144): bytes, rows at multiples of 4; y (rows,k): float32, row-major, any leading
/// dimension, apart. Bit for bit. 4.5625 bytes a value.
void run(const ops::Q4KDequantizeArgs& args, Device& device) {
  if (args.rows == 0 || args.k == 0) return;
  const Index y_ld = leading(args.y);
  const Q4kDequantize a{args.rows,     args.k, q4k_rows(args.blocks),
                        args.y.data(), y_ld,   rows_aligned(args.y.data(), y_ld)};
  const Index warps = std::min<Index>(a.rows * q4_k::blocks_of(a.k), Index{1} << 20);
  launch(&q4k_dequantize_kernel, {dim3(blocks_for(warps, 8)), dim3(256)}, device, a);
}

std::optional<std::string> refuse(const ops::Q4KDequantizeArgs& args) { return refuse_bytes(args.blocks.data()); }

const KernelRegistration warp_per_block{{.id = "q4_k_dequantize/" ASSAY_CUDA_NAME "/warp_per_block",
                                         .arithmetic = {.functions = FunctionLibrary::cuda},
                                         .summary = "a warp per super-block, eight values a lane",
                                         .run = &run_typed<ops::Q4KDequantizeArgs, &run>,
                                         .refuse = &refuse_typed<ops::Q4KDequantizeArgs, &refuse>}};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_q4_k_dequantize
