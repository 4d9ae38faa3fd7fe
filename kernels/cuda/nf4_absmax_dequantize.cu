// absmax = code[q]·absmax2 + offset with CUDA.
#include <algorithm>

#include "kernels/cuda/nf4_absmax.cuh"
#include "ops/nf4_absmax_dequantize.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_absmax_dequantize {
namespace {

struct AbsmaxDecoding {
  AbsmaxRows<float> absmax;
  const std::uint8_t* codes;
  const float* absmax2;
  const float* offset;
};

AbsmaxDecoding absmax_decoding(const ops::Nf4AbsmaxDequantizeArgs& args) {
  return {absmax_rows(args.absmax), args.codes.data(), args.absmax2.data(), args.offset.data()};
}

/// Returns element i, where `entry` is the codebook entry of its code.
__device__ inline float decode(const AbsmaxDecoding& a, Index i, float entry) {
  return __fmaf_rn(entry, a.absmax2[i / kAbsmaxGroup], a.offset[0]);
}

/// One thread per element; the entry is computed, as a quotient of integers rounded once.
__global__ void __launch_bounds__(256) elementwise_kernel(AbsmaxDecoding a) {
  for (Index i = Index{blockIdx.x} * 256 + threadIdx.x; i < a.absmax.count; i += Index{gridDim.x} * 256)
    a.absmax.at(i) = decode(a, i, absmax_entry(a.codes[i]));
}

/// Four elements a thread, from a word to 16 bytes; the four share a group. `aligned`: absmax is dense and starts at a
/// multiple of 16 bytes.
template <bool aligned>
__global__ void __launch_bounds__(256) vectors_kernel(AbsmaxDecoding a) {
  ASSAY_SHARED(float, table, [256]);
  table[threadIdx.x] = absmax_entry(threadIdx.x);
  __syncthreads();
  const Index count = a.absmax.count;
  for (Index i = (Index{blockIdx.x} * 256 + threadIdx.x) * 4; i < count; i += Index{gridDim.x} * 1024) {
    const unsigned word = *reinterpret_cast<const unsigned*>(a.codes + i);
    const float v[4] = {decode(a, i, table[word & 255]), decode(a, i, table[word >> 8 & 255]),
                        decode(a, i, table[word >> 16 & 255]), decode(a, i, table[word >> 24])};
    if (aligned && i + 4 <= count) {
      *reinterpret_cast<float4*>(a.absmax.data + i) = make_float4(v[0], v[1], v[2], v[3]);
      continue;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (i + e < count) a.absmax.at(i + e) = v[e];
  }
}

void run_elementwise(const ops::Nf4AbsmaxDequantizeArgs& args, Device& device) {
  const AbsmaxDecoding a = absmax_decoding(args);
  if (a.absmax.count == 0) return;
  const dim3 grid(static_cast<unsigned>(std::min<Index>((a.absmax.count + 255) / 256, 1 << 20)));
  launch(&elementwise_kernel, {grid, dim3(256)}, device, a);
}

/// codes (256 g), absmax2 (g), offset (1), g = ceil(n b / 256): dense; absmax (n, b): row-major; it shares no memory.
/// Fused: one rounding. Cost 5 n b bytes.
void run_vectors(const ops::Nf4AbsmaxDequantizeArgs& args, Device& device) {
  const AbsmaxDecoding a = absmax_decoding(args);
  if (a.absmax.count == 0) return;
  const dim3 grid(static_cast<unsigned>(std::min<Index>((a.absmax.count + 1023) / 1024, 4096)));
  const bool aligned = args.absmax.contiguous() && reinterpret_cast<std::uintptr_t>(a.absmax.data) % 16 == 0;
  launch(aligned ? &vectors_kernel<true> : &vectors_kernel<false>, {grid, dim3(256)}, device, a);
}

template <void (*run)(const ops::Nf4AbsmaxDequantizeArgs&, Device&)>
Kernel decoder(std::string_view id, std::string_view summary) {
  return {.id = id, .summary = summary, .run = &run_typed<ops::Nf4AbsmaxDequantizeArgs, run>};
}

const KernelRegistration elementwise{decoder<&run_elementwise>("nf4_absmax_dequantize/" ASSAY_CUDA_NAME "/elementwise",
                                                               "one thread an element, its entry computed")};
const KernelRegistration vectors{preferred(decoder<&run_vectors>(
    "nf4_absmax_dequantize/" ASSAY_CUDA_NAME "/vectors", "four elements a thread, the codebook in shared memory"))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_absmax_dequantize
