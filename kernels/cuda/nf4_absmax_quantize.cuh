// q = the 8-bit code of (absmax - mean) / absmax2: sums of 256 values, level by level, then a group's maximum and codes.
#pragma once

#include <algorithm>

#include "kernels/cuda/nf4_absmax.cuh"
#include "ops/nf4_absmax_quantize.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// One level of the sum: out[g] = the sum of group g of the terms, or offset[0] from it where it is the last.
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

namespace absmax_quantize_detail {

constexpr unsigned kAllLanes = 0xffffffffU;

/// A term as it counts; on higher levels of the sum, where none is small or negative, itself.
template <AbsmaxFault fault>
__device__ inline float term(const AbsmaxRows<const float>& rows, Index i) {
  if (i >= rows.count) return 0.0f;
  const float x = rows.at<fault>(i);
  if constexpr (fault == AbsmaxFault::negative_kept) return nf4_scale(x);
  if constexpr (fault == AbsmaxFault::small_kept) return x;
  return absmax_value(x);
}

template <AbsmaxFault fault>
__device__ inline void store_sum(const AbsmaxSums& a, Index g, float sum) {
  a.out[g] = a.last ? absmax_offset(sum, a.reciprocal) : sum;
}

/// How far value i lies from the offset.
template <AbsmaxFault fault>
__device__ inline float difference(const AbsmaxEncoding& a, Index i, float offset) {
  if (fault != AbsmaxFault::garbage_in_tail && i >= a.absmax.count) return 0.0f;
  const float value = term<fault>(a.absmax, i);
  return fault == AbsmaxFault::offset_not_subtracted ? value : value - offset;
}

template <AbsmaxFault fault>
__device__ inline float midpoint_of(unsigned i) {
  return absmax_midpoint(entry_of<fault>(i), entry_of<fault>(i + 1));
}

template <AbsmaxFault fault>
__device__ inline bool exceeds(float v, float limit) {
  return fault == AbsmaxFault::tie_goes_up ? v >= limit : v > limit;
}

/// The scale of a group from the largest magnitude in it: those of floats order like integers, NaN last.
template <AbsmaxFault fault>
__device__ inline float scale_from(unsigned most) {
  return fault == AbsmaxFault::small_kept ? __uint_as_float(most) : absmax_scale(__uint_as_float(most));
}
__device__ inline unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffU; }

}  // namespace absmax_quantize_detail

/// One thread a group of 256 terms.
template <AbsmaxFault fault>
__global__ void __launch_bounds__(64) absmax_thread_sums_kernel(AbsmaxSums a) {
  for (Index g = Index{blockIdx.x} * 64 + threadIdx.x; g < max(absmax_groups(a.terms.count), Index{1}); g += Index{gridDim.x} * 64) {
    float terms[128];
    for (int i = 0; i < 128; ++i)
      terms[i] = absmax_quantize_detail::term<fault>(a.terms, g * kAbsmaxGroup + i) +
                 absmax_quantize_detail::term<fault>(a.terms, g * kAbsmaxGroup + i + 128);
    for (int width = 64; width > 0; width /= 2)
      for (int i = 0; i < width; ++i) terms[i] += terms[i + width];
    absmax_quantize_detail::store_sum<fault>(a, g, terms[0]);
  }
}

/// One block a group of 256 terms: three steps of the tree in shared memory, five over the lanes of the first warp.
template <AbsmaxFault fault>
__global__ void __launch_bounds__(256) absmax_block_sums_kernel(AbsmaxSums a) {
  namespace detail = absmax_quantize_detail;
  ASSAY_SHARED(float, terms, [256]);
  const unsigned t = threadIdx.x;
  for (Index g = blockIdx.x; g < max(absmax_groups(a.terms.count), Index{1}); g += gridDim.x) {
    float sum = detail::term<fault>(a.terms, g * kAbsmaxGroup + t);
#pragma unroll
    for (unsigned width = 128; width >= 32; width /= 2) {
      terms[t] = sum;
      if constexpr (fault != AbsmaxFault::no_barrier) __syncthreads();
      if (t < width) sum += terms[t + width];
      __syncthreads();
    }
    if (t < 32) {
#pragma unroll
      for (int lanes = fault == AbsmaxFault::half_the_sum_lost ? 8 : 16; lanes > 0; lanes /= 2)
        sum += __shfl_down_sync(detail::kAllLanes, sum, lanes);
      if (t == 0) detail::store_sum<fault>(a, g, sum);
    }
  }
}

/// One thread a group: its maximum, then its codes, with midpoints computed on the way.
template <AbsmaxFault fault>
__global__ void __launch_bounds__(64) absmax_thread_per_group_kernel(AbsmaxEncoding a) {
  namespace detail = absmax_quantize_detail;
  const float offset = a.offset[0];
  for (Index g = Index{blockIdx.x} * 64 + threadIdx.x; g < absmax_groups(a.absmax.count); g += Index{gridDim.x} * 64) {
    const Index first = g * kAbsmaxGroup;
    unsigned most = 0;
    for (Index i = first; i < first + kAbsmaxGroup; ++i) most = max(most, detail::magnitude(detail::difference<fault>(a, i, offset)));
    const float scale = detail::scale_from<fault>(most);
    a.absmax2[g] = scale;
    for (Index i = first; i < first + kAbsmaxGroup; ++i) {
      unsigned below = scale > 0 && i < a.absmax.count ? 0U : unsigned{kAbsmaxZero};
      if (scale > 0 && i < a.absmax.count)
        for (unsigned half = 128; half > 0; half /= 2)
          if (detail::exceeds<fault>(detail::difference<fault>(a, i, offset),
                                     __fmul_rn(detail::midpoint_of<fault>(below + half - 1), scale)))
            below += half;
      a.codes[i] = static_cast<std::uint8_t>(below);
    }
  }
}

/// One block a group: maxima of bits over lanes and warps, midpoints times the scale in shared memory, a search by halves.
template <AbsmaxFault fault>
__global__ void __launch_bounds__(256) absmax_block_per_group_kernel(AbsmaxEncoding a) {
  namespace detail = absmax_quantize_detail;
  using F = AbsmaxFault;
  ASSAY_SHARED(unsigned, maxima, [8]);
  ASSAY_SHARED(float, limits, [256]);
  const unsigned t = threadIdx.x;
  const float offset = a.offset[0], midpoint = t < 255 ? detail::midpoint_of<fault>(t) : 0.0f;
  for (Index g = blockIdx.x; g < absmax_groups(a.absmax.count); g += gridDim.x) {
    const Index first = g * kAbsmaxGroup, i = first + t;
    const float v = detail::difference<fault>(a, i, offset);
    unsigned most = detail::magnitude(v);
    if (fault == F::groups_per_row && i / a.absmax.width != first / a.absmax.width) most = 0;
#pragma unroll
    for (int lanes = fault == F::half_the_lanes_lost ? 8 : 16; lanes > 0; lanes /= 2)
      most = max(most, __shfl_xor_sync(detail::kAllLanes, most, lanes));
    if (t % 32 == 0) maxima[t / 32] = most;
    __syncthreads();
#pragma unroll
    for (unsigned w = 0; w < 8; ++w)
      if (fault != F::group_of_64 || w / 2 == t / 64) most = max(most, maxima[w]);
    const float scale = detail::scale_from<fault>(most);
    limits[t] = __fmul_rn(midpoint, scale);
    if constexpr (fault != F::no_barrier) __syncthreads();
    unsigned below = 0;
#pragma unroll
    for (unsigned half = 128; half > 0; half /= 2)
      if (detail::exceeds<fault>(v, limits[below + half - 1])) below += half;
    const bool coded = scale > 0 && (fault == F::garbage_in_tail || i < a.absmax.count);
    if (fault != F::tail_unwritten || i < a.absmax.count) a.codes[i] = static_cast<std::uint8_t>(coded ? below : kAbsmaxZero);
    if (t == 0) a.absmax2[g] = scale;
    __syncthreads();  // before the next group's maxima
  }
}

/// offset from all values, in scratch of 4/255 of their bytes: given back when the device is done with it.
template <AbsmaxFault fault>
void launch_offset(const ops::Nf4AbsmaxQuantizeArgs& args, void (*kernel)(AbsmaxSums), unsigned groups_a_block, unsigned threads,
                   Device& device) {
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
    terms = AbsmaxRows<const float>{fault == AbsmaxFault::level_lost ? std::min(groups, kAbsmaxGroup) : groups, groups, to, groups};
    std::swap(to, next);
  }
}

template <AbsmaxFault fault = AbsmaxFault::none>
void absmax_thread_per_group(const ops::Nf4AbsmaxQuantizeArgs& args, Device& device) {
  launch_offset<fault>(args, &absmax_thread_sums_kernel<fault>, 64, 64, device);
  const AbsmaxEncoding a{absmax_rows(args.absmax), args.codes.data(), args.absmax2.data(), args.offset.data()};
  if (a.absmax.count == 0) return;
  const dim3 grid(static_cast<unsigned>(std::min<Index>((absmax_groups(a.absmax.count) + 63) / 64, 1 << 20)));
  launch(&absmax_thread_per_group_kernel<fault>, {grid, dim3(64)}, device, a);
}

/// absmax (n, b): row-major; codes (256 g), absmax2 (g), offset (1), g = ceil(n b / 256): dense; they share no memory. Bits are
/// the contract's. Cost 9 n b bytes.
template <AbsmaxFault fault = AbsmaxFault::none>
void absmax_block_per_group(const ops::Nf4AbsmaxQuantizeArgs& args, Device& device) {
  launch_offset<fault>(args, &absmax_block_sums_kernel<fault>, 1, 256, device);
  const AbsmaxEncoding a{absmax_rows(args.absmax), args.codes.data(), args.absmax2.data(), args.offset.data()};
  if (a.absmax.count == 0) return;
  const dim3 grid(static_cast<unsigned>(std::min<Index>(absmax_groups(a.absmax.count), 4096)));
  launch(&absmax_block_per_group_kernel<fault>, {grid, dim3(256)}, device, a);
}

/// The registry's row; the caller adds what differs.
template <void (*run)(const ops::Nf4AbsmaxQuantizeArgs&, Device&)>
Kernel absmax_quantize_kernel(std::string_view id, std::string_view summary) {
  return {.op = "nf4_absmax_quantize",
          .id = id,
          .backend = kCudaBackend,
          .source = "kernels/cuda/nf4_absmax_quantize.cuh",
          .summary = summary,
          .run = &run_typed<ops::Nf4AbsmaxQuantizeArgs, run>};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
