// The codebook of NF4 in shared memory, and a block's codes to floats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/nf4.hpp"
#include "core/view.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// The codebook as an argument of kernels.
struct Nf4Table {
  float entry[16];
};
inline Nf4Table nf4_table() {
  Nf4Table table;
  std::ranges::copy(kNf4, table.entry);
  return table;
}

/// Codes and scales of a matrix [n, k]. Bytes of row j lie at codes + j * codes_ld, a multiple of 4, its scales at absmax +
/// j * absmax_ld. Offsets take 64 bits.
struct Nf4Matrix {
  Index n, k;
  const std::uint8_t* codes;
  Index codes_ld;
  const float* absmax;
  Index absmax_ld;
  Nf4Table table;
};

/// Leading dimension of a row-major matrix; that of a single row says nothing.
template <class T>
Index nf4_leading(const View<T>& matrix) {
  return matrix.dim(0) > 1 ? matrix.stride(0) : std::max<Index>(matrix.dim(1), 1);
}

/// Args: those of an operation with n, k, codes and absmax.
template <class Args>
Nf4Matrix nf4_matrix(const Args& args) {
  return {args.n, args.k, args.codes.data(), nf4_leading(args.codes), args.absmax.data(), nf4_leading(args.absmax),
          nf4_table()};
}

/// What kernels of NF4 do wrong on purpose (falsify/mutants/cuda).
enum class Nf4Fault {
  none,
  nibbles_swapped,
  blocks_over_rows,
  scale_of_32,
  tail_unwritten,
  no_barrier,
  first_row_only,
  small_scale_kept,
  // nf4_quantize
  quotient_compared,
  tie_goes_up,
  nan_swallowed,
  half_the_lanes_lost,
  no_barrier_between,
  early_return,
  zero_divided,
  padding_zero,
  // products
  tail_of_k_dropped,
  pass_overwritten,
  scale_behind_the_end,
};

/// Thread t < 16 of a block copies its entry; a barrier follows. Unrolled: an index that is not known makes nvcc copy the
/// arguments of the kernel into local memory.
template <Nf4Fault fault = Nf4Fault::none>
__device__ inline void load_table(float* shared, const Nf4Table& table, int t) {
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (t == i) shared[i] = table.entry[i];
  if constexpr (fault != Nf4Fault::no_barrier) __syncthreads();
}

/// What is stored for the block of element (j, p).
template <Nf4Fault fault = Nf4Fault::none>
__device__ inline float absmax_of(const Nf4Matrix& w, Index j, Index p) {
  Index block = p / (fault == Nf4Fault::scale_of_32 ? 32 : kNf4Block);
  if constexpr (fault == Nf4Fault::scale_of_32) block = min(block, nf4_blocks(w.k) - 1);
  if constexpr (fault == Nf4Fault::blocks_over_rows) {
    const Index at = (j * w.k + p) / kNf4Block, b = nf4_blocks(w.k);
    return w.absmax[at / b * w.absmax_ld + at % b];
  }
  return w.absmax[j * w.absmax_ld + block];
}

/// The scale of element (j, p).
template <Nf4Fault fault = Nf4Fault::none>
__device__ inline float scale_of(const Nf4Matrix& w, Index j, Index p) {
  const float absmax = absmax_of<fault>(w, j, p);
  return fault == Nf4Fault::small_scale_kept ? absmax : nf4_scale(absmax);
}

/// Weights (j, p..p+3), p a multiple of 4 in the row; one rounding each.
template <Nf4Fault fault = Nf4Fault::none>
__device__ inline float4 decode4(const Nf4Matrix& w, const float* table, Index j, Index p) {
  const unsigned pairs = *reinterpret_cast<const std::uint16_t*>(w.codes + j * w.codes_ld + p / 2);
  const float scale = scale_of<fault>(w, j, p);
  constexpr int first = fault == Nf4Fault::nibbles_swapped ? 0 : 4, second = 4 - first;
  return make_float4(__fmul_rn(table[pairs >> first & 15], scale), __fmul_rn(table[pairs >> second & 15], scale),
                     __fmul_rn(table[pairs >> (8 + first) & 15], scale), __fmul_rn(table[pairs >> (8 + second) & 15], scale));
}

/// Weight (j, p).
template <Nf4Fault fault = Nf4Fault::none>
__device__ inline float decode1(const Nf4Matrix& w, const float* table, Index j, Index p) {
  const unsigned pair = w.codes[j * w.codes_ld + p / 2];
  const bool high = (p % 2 == 0) != (fault == Nf4Fault::nibbles_swapped);
  return __fmul_rn(table[high ? pair >> 4 : pair & 15], scale_of<fault>(w, j, p));
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
