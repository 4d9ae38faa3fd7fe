// q = the 8-bit code of (absmax - mean) / absmax2 with CUDA: sums of 256 values, level by level, then the maximum and
// codes of each group.
#include <algorithm>

#include "kernels/cuda/nf4_absmax.cuh"
#include "ops/nf4_absmax_quantize.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_absmax_quantize {
namespace {

/// One level of the sum: out[g] = the sum of group g of the terms; the last level forms offset[0] from the sum.
struct AbsmaxSums {
  AbsmaxRows<const float> terms;
  float* out;
  bool last;
  float reciprocal;
};

struct AbsmaxEncoding {
  AbsmaxRows<const float> absmax;
  std::uint8_t* codes;
  float* absmax2;
  const float* offset;
};

constexpr unsigned kAllLanes = 0xffffffffU;

/// Returns term i by absmax_value, which leaves the sums of higher levels unchanged: none is small or negative.
__device__ inline float term(const AbsmaxRows<const float>& rows, Index i) {
  return i < rows.count ? absmax_value(rows.at(i)) : 0.0f;
}

__device__ inline void store_sum(const AbsmaxSums& a, Index g, float sum) {
  a.out[g] = a.last ? absmax_offset(sum, a.reciprocal) : sum;
}

/// Returns value i minus the offset; 0 past the last value.
__device__ inline float difference(const AbsmaxEncoding& a, Index i, float offset) {
  return i < a.absmax.count ? term(a.absmax, i) - offset : 0.0f;
}

/// Returns the midpoint between computed entries: quotients of integers, rounded once.
__device__ inline float midpoint_of(unsigned i) { return absmax_midpoint(absmax_entry(i), absmax_entry(i + 1)); }

/// Returns the scale of a group from its largest magnitude: bits of magnitudes order like integers, NaN last.
__device__ inline float scale_from(unsigned most) { return absmax_scale(__uint_as_float(most)); }
__device__ inline unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffU; }

/// One thread per group of 256 terms.
__global__ void __launch_bounds__(64) thread_sums_kernel(AbsmaxSums a) {
  for (Index g = Index{blockIdx.x} * 64 + threadIdx.x; g < max(absmax_groups(a.terms.count), Index{1});
       g += Index{gridDim.x} * 64) {
    float terms[128];
    for (int i = 0; i < 128; ++i)
      terms[i] = term(a.terms, g * kAbsmaxGroup + i) + term(a.terms, g * kAbsmaxGroup + i + 128);
    for (int width = 64; width > 0; width /= 2)
      for (int i = 0; i < width; ++i) terms[i] += terms[i + width];
    store_sum(a, g, terms[0]);
  }
}

/// One block per group of 256 terms: three steps of the tree in shared memory, five over the lanes of the first warp.
__global__ void __launch_bounds__(256) block_sums_kernel(AbsmaxSums a) {
  ASSAY_SHARED(float, terms, [256]);
  const unsigned t = threadIdx.x;
  for (Index g = blockIdx.x; g < max(absmax_groups(a.terms.count), Index{1}); g += gridDim.x) {
    float sum = term(a.terms, g * kAbsmaxGroup + t);
#pragma unroll
    for (unsigned width = 128; width >= 32; width /= 2) {
      terms[t] = sum;
      __syncthreads();
      if (t < width) sum += terms[t + width];
      __syncthreads();
    }
    if (t < 32) {
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_down_sync(kAllLanes, sum, lanes);
      if (t == 0) store_sum(a, g, sum);
    }
  }
}

/// One thread per group: its maximum, then its codes, with midpoints recomputed.
__global__ void __launch_bounds__(64) thread_per_group_kernel(AbsmaxEncoding a) {
  const float offset = a.offset[0];
  for (Index g = Index{blockIdx.x} * 64 + threadIdx.x; g < absmax_groups(a.absmax.count); g += Index{gridDim.x} * 64) {
    const Index first = g * kAbsmaxGroup;
    unsigned most = 0;
    for (Index i = first; i < first + kAbsmaxGroup; ++i) most = max(most, magnitude(difference(a, i, offset)));
    const float scale = scale_from(most);
    a.absmax2[g] = scale;
    for (Index i = first; i < first + kAbsmaxGroup; ++i) {
      unsigned below = scale > 0 && i < a.absmax.count ? 0U : unsigned{kAbsmaxZero};
      if (scale > 0 && i < a.absmax.count)
        for (unsigned half = 128; half > 0; half /= 2)
          if (difference(a, i, offset) > __fmul_rn(midpoint_of(below + half - 1), scale)) below += half;
      a.codes[i] = static_cast<std::uint8_t>(below);
    }
  }
}

/// One block per group: maxima of bits over lanes and warps, midpoints times the scale in shared memory, a binary
/// search.
__global__ void __launch_bounds__(256) block_per_group_kernel(AbsmaxEncoding a) {
  ASSAY_SHARED(unsigned, maxima, [8]);
  ASSAY_SHARED(float, limits, [256]);
  const unsigned t = threadIdx.x;
  const float offset = a.offset[0], midpoint = t < 255 ? midpoint_of(t) : 0.0f;
  for (Index g = blockIdx.x; g < absmax_groups(a.absmax.count); g += gridDim.x) {
    const Index first = g * kAbsmaxGroup, i = first + t;
    const float v = difference(a, i, offset);
    unsigned most = magnitude(v);
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) most = max(most, __shfl_xor_sync(kAllLanes, most, lanes));
    if (t % 32 == 0) maxima[t / 32] = most;
    __syncthreads();
#pragma unroll
    for (unsigned w = 0; w < 8; ++w) most = max(most, maxima[w]);
    const float scale = scale_from(most);
    limits[t] = __fmul_rn(midpoint, scale);
    __syncthreads();
    unsigned below = 0;
#pragma unroll
    for (unsigned half = 128; half > 0; half /= 2)
      if (v > limits[below + half - 1]) below += half;
    const bool coded = scale > 0 && i < a.absmax.count;
    a.codes[i] = static_cast<std::uint8_t>(coded ? below : kAbsmaxZero);
    if (t == 0) a.absmax2[g] = scale;
    __syncthreads();  // before the next group's maxima
  }
}

/// Computes the offset from all values, in scratch of 4/255 of their bytes, which the device frees after use.
void launch_offset(const ops::Nf4AbsmaxQuantizeArgs& args, void (*kernel)(AbsmaxSums), unsigned groups_a_block,
                   unsigned threads, Device& device) {
  AbsmaxRows<const float> terms = absmax_rows(args.absmax);
  const Index below = absmax_groups(terms.count), above = absmax_groups(below);
  const float reciprocal = terms.count == 0 ? 0.0f : absmax_reciprocal(terms.count);
  const Buffer scratch = device.allocate(static_cast<std::size_t>(below + above + 1) * sizeof(float));
  float* to = static_cast<float*>(scratch.address());
  float* next = to + below;
  for (;;) {
    const Index groups = std::max<Index>(absmax_groups(terms.count), 1);
    const bool last = groups == 1;
    const dim3 grid(static_cast<unsigned>(std::min<Index>((groups + groups_a_block - 1) / groups_a_block, 1 << 20)));
    const AbsmaxSums sums{terms, last ? args.offset.data() : to, last, reciprocal};
    launch(kernel, {grid, dim3(threads)}, device, sums);
    if (last) return;
    terms = AbsmaxRows<const float>{groups, groups, to, groups};
    std::swap(to, next);
  }
}

void run_thread_per_group(const ops::Nf4AbsmaxQuantizeArgs& args, Device& device) {
  launch_offset(args, &thread_sums_kernel, 64, 64, device);
  const AbsmaxEncoding a{absmax_rows(args.absmax), args.codes.data(), args.absmax2.data(), args.offset.data()};
  if (a.absmax.count == 0) return;
  const dim3 grid(static_cast<unsigned>(std::min<Index>((absmax_groups(a.absmax.count) + 63) / 64, 1 << 20)));
  launch(&thread_per_group_kernel, {grid, dim3(64)}, device, a);
}

/// absmax (n, b): row-major; codes (256 g), absmax2 (g), offset (1), g = ceil(n b / 256): dense; they share no memory.
/// The contract fixes the bits. Cost 9 n b bytes.
void run_block_per_group(const ops::Nf4AbsmaxQuantizeArgs& args, Device& device) {
  launch_offset(args, &block_sums_kernel, 1, 256, device);
  const AbsmaxEncoding a{absmax_rows(args.absmax), args.codes.data(), args.absmax2.data(), args.offset.data()};
  if (a.absmax.count == 0) return;
  const dim3 grid(static_cast<unsigned>(std::min<Index>(absmax_groups(a.absmax.count), 4096)));
  launch(&block_per_group_kernel, {grid, dim3(256)}, device, a);
}

template <void (*run)(const ops::Nf4AbsmaxQuantizeArgs&, Device&)>
Kernel encoder(std::string_view id, std::string_view summary) {
  return {.id = id, .summary = summary, .run = &run_typed<ops::Nf4AbsmaxQuantizeArgs, run>};
}

const KernelRegistration thread_per_group{encoder<&run_thread_per_group>(
    "nf4_absmax_quantize/" ASSAY_CUDA_NAME "/thread_per_group", "one thread a group of 256")};
const KernelRegistration block_per_group{preferred(
    encoder<&run_block_per_group>("nf4_absmax_quantize/" ASSAY_CUDA_NAME "/block_per_group",
                                  "one block a group of 256: sums and maxima over lanes, limits in shared memory"))};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_absmax_quantize
