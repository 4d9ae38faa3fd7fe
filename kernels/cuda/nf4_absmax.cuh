// What kernels of double quantization share: where the scales of NF4 blocks lie, and faults.
#pragma once

#include <cstdint>

#include "core/nf4_absmax.hpp"
#include "core/view.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// What kernels do wrong on purpose (falsify/mutants/cuda).
enum class AbsmaxFault {
  none,
  table_off_by_one,
  unsigned_map,
  group_of_64,
  groups_per_row,
  dense_assumed,
  no_barrier,
  tail_unwritten,
  // nf4_absmax_quantize
  offset_not_subtracted,
  tie_goes_up,
  garbage_in_tail,
  half_the_lanes_lost,
  half_the_sum_lost,
  level_lost,
  negative_kept,
  small_kept,
  // nf4_absmax_dequantize
  offset_left_out,
  truncated,
};

/// `count` numbers in rows of `width`, row j at data + j * ld. Offsets take 64 bits.
template <class T>
struct AbsmaxRows {
  Index count, width;
  T* data;
  Index ld;

  template <AbsmaxFault fault = AbsmaxFault::none>
  __device__ T& at(Index i) const {
    return fault == AbsmaxFault::dense_assumed || ld == width ? data[i] : data[i / width * ld + i % width];
  }
};
template <class T>
AbsmaxRows<T> absmax_rows(const View<T>& absmax) {
  return {absmax.size(), absmax.dim(1), absmax.data(), absmax.dim(0) > 1 ? absmax.stride(0) : absmax.dim(1)};
}

/// Entry `code` of the codebook, computed: a quotient of integers, rounded once.
template <AbsmaxFault fault = AbsmaxFault::none>
__device__ inline float entry_of(unsigned code) {
  if constexpr (fault == AbsmaxFault::table_off_by_one) return absmax_entry(code < 255 ? code + 1 : 255);
  if constexpr (fault == AbsmaxFault::unsigned_map) return static_cast<float>(code) / 255.0f;
  return absmax_entry(code);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
