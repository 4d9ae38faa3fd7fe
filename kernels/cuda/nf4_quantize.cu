// q = the NF4 code of x / absmax with CUDA.
#include "kernels/cuda/nf4.cuh"
#include "ops/nf4_quantize.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_quantize {
namespace {

/// Element (j, p) of x is at x + j * x_ld + p; codes and absmax as in Nf4Matrix. Offsets take 64 bits.
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

Nf4Encoding nf4_encoding(const ops::Nf4QuantizeArgs& args) {
  Nf4Encoding e{args.n,
                args.k,
                args.x.data(),
                nf4_leading(args.x),
                args.codes.data(),
                nf4_leading(args.codes),
                args.absmax.data(),
                nf4_leading(args.absmax),
                {}};
  std::ranges::copy(kNf4Midpoints, e.midpoints);
  return e;
}

constexpr unsigned kInfinity = 0x7f800000U, kNan = 0x7fc00000U;

/// Returns the bits of the magnitude of x: they order like integers, and NaN exceeds infinity.
__device__ inline unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffU; }

/// Returns the scale of a block from its largest magnitude.
__device__ inline float scale_from(unsigned most) {
  return most >= kInfinity ? __uint_as_float(kNan) : nf4_scale(__uint_as_float(most));
}

__device__ inline unsigned code_of(const Nf4Encoding& e, float x, float scale) {
  if (!(scale > 0)) return kNf4Zero;
  unsigned above = 0;
#pragma unroll
  for (int i = 0; i < 15; ++i) above += x > __fmul_rn(e.midpoints[i], scale) ? 1U : 0U;
  return above;
}

/// One thread per block of 64.
__global__ void __launch_bounds__(256) thread_per_block_kernel(Nf4Encoding e) {
  const Index b = Index{blockIdx.x} * 256 + threadIdx.x, first = b * kNf4Block;
  if (first >= e.k) return;
  for (Index j = blockIdx.y; j < e.n; j += gridDim.y) {
    const float* const x = e.x + j * e.x_ld;
    unsigned most = 0;
    const Index end = min(e.k, first + kNf4Block);
    for (Index p = first; p < end; ++p) most = max(most, magnitude(x[p]));
    const float scale = scale_from(most);
    e.absmax[j * e.absmax_ld + b] = scale;
    for (Index p = first; p < first + kNf4Block; p += 2) {
      const unsigned high = p < end ? code_of(e, x[p], scale) : kNf4Zero;
      const unsigned low = p + 1 < end ? code_of(e, x[p + 1], scale) : kNf4Zero;
      e.codes[j * e.codes_ld + p / 2] = static_cast<std::uint8_t>(high << 4 | low);
    }
  }
}

/// One warp per block of 64, two elements and a byte of codes a lane; the maximum by shuffles, in which all lanes take
/// part.
template <bool aligned>
__global__ void __launch_bounds__(256) warp_per_block_kernel(Nf4Encoding e) {
  const Index blocks = nf4_blocks(e.k), all = e.n * blocks, lane = threadIdx.x % 32;
  for (Index i = (Index{blockIdx.x} * 256 + threadIdx.x) / 32; i < all; i += Index{gridDim.x} * 8) {
    const Index j = i / blocks, b = i % blocks, p = b * kNf4Block + 2 * lane;
    const float* x = e.x + j * e.x_ld + p;
    float2 v = make_float2(0.0f, 0.0f);
    if (aligned && p + 2 <= e.k) v = *reinterpret_cast<const float2*>(x);
    else if (p < e.k) v = make_float2(x[0], p + 1 < e.k ? x[1] : 0.0f);
    unsigned most = max(magnitude(v.x), magnitude(v.y));
#pragma unroll
    for (int step = 16; step > 0; step /= 2) most = max(most, __shfl_xor_sync(0xffffffffU, most, step));
    const float scale = scale_from(most);
    const unsigned high = code_of(e, v.x, scale), low = code_of(e, v.y, scale);
    e.codes[j * e.codes_ld + p / 2] = static_cast<std::uint8_t>(high << 4 | low);
    if (lane == 0) e.absmax[j * e.absmax_ld + b] = scale;
  }
}

void run_thread_per_block(const ops::Nf4QuantizeArgs& args, Device& device) {
  if (args.n == 0 || args.k == 0) return;
  const dim3 grid(blocks_for(nf4_blocks(args.k), 256), static_cast<unsigned>(std::min<Index>(args.n, 65535)));
  launch(&thread_per_block_kernel, {grid, dim3(256)}, device, nf4_encoding(args));
}

/// x (n, k), codes (n, 32 b), absmax (n, b), b = ceil(k/64): row-major; they share no memory. Cost 4.6 n k bytes.
void run_warp_per_block(const ops::Nf4QuantizeArgs& args, Device& device) {
  if (args.n == 0 || args.k == 0) return;
  const Index warps = args.n * nf4_blocks(args.k), ld = nf4_leading(args.x);
  const dim3 grid(static_cast<unsigned>(std::min<Index>((warps + 7) / 8, 1 << 20)));
  const bool aligned = reinterpret_cast<std::uintptr_t>(args.x.data()) % 8 == 0 && (args.n == 1 || ld % 2 == 0);
  launch(aligned ? &warp_per_block_kernel<true> : &warp_per_block_kernel<false>, {grid, dim3(256)}, device,
         nf4_encoding(args));
}

template <void (*run)(const ops::Nf4QuantizeArgs&, Device&)>
Kernel encoder(std::string_view id, std::string_view summary) {
  return {.id = id, .summary = summary, .run = &run_typed<ops::Nf4QuantizeArgs, run>};
}

const KernelRegistration thread_per_block{
    encoder<&run_thread_per_block>("nf4_quantize/" ASSAY_CUDA_NAME "/thread_per_block", "one thread a block of 64")};
const KernelRegistration warp_per_block{preferred(encoder<&run_warp_per_block>(
    "nf4_quantize/" ASSAY_CUDA_NAME "/warp_per_block", "one warp a block of 64, its maximum by shuffles"))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_quantize
