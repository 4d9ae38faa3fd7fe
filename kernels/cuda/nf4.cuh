// The NF4 codebook in shared memory, and the decoding of codes to floats.
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

/// Codes and scales of a matrix [n, k]. Bytes of row j are at codes + j * codes_ld, a multiple of 4, its scales at
/// absmax + j * absmax_ld. Offsets take 64 bits.
struct Nf4Matrix {
  Index n, k;
  const std::uint8_t* codes;
  Index codes_ld;
  const float* absmax;
  Index absmax_ld;
  Nf4Table table;
};

/// Returns the leading dimension of a row-major matrix; the stride of a single row is meaningless.
template <class T>
Index nf4_leading(const View<T>& matrix) {
  return matrix.dim(0) > 1 ? matrix.stride(0) : std::max<Index>(matrix.dim(1), 1);
}

/// Args: the arguments of an operation with n, k, codes and absmax.
template <class Args>
Nf4Matrix nf4_matrix(const Args& args) {
  return {args.n,     args.k, args.codes.data(), nf4_leading(args.codes), args.absmax.data(), nf4_leading(args.absmax),
          nf4_table()};
}

/// Copies the table: thread t < 16 of a block copies entry t; the caller adds a barrier. Unrolled, since a dynamic
/// index makes nvcc copy the kernel's arguments into local memory.
__device__ inline void load_table(float* shared, const Nf4Table& table, int t) {
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (t == i) shared[i] = table.entry[i];
  __syncthreads();
}

/// Returns the scale of element (j, p).
__device__ inline float scale_of(const Nf4Matrix& w, Index j, Index p) {
  return nf4_scale(w.absmax[j * w.absmax_ld + p / kNf4Block]);
}

/// Returns weights (j, p..p+3) for p a multiple of 4 in the row; one rounding each.
__device__ inline float4 decode4(const Nf4Matrix& w, const float* table, Index j, Index p) {
  const unsigned pairs = *reinterpret_cast<const std::uint16_t*>(w.codes + j * w.codes_ld + p / 2);
  const float scale = scale_of(w, j, p);
  return make_float4(__fmul_rn(table[pairs >> 4 & 15], scale), __fmul_rn(table[pairs & 15], scale),
                     __fmul_rn(table[pairs >> 12], scale), __fmul_rn(table[pairs >> 8 & 15], scale));
}

/// Returns weight (j, p).
__device__ inline float decode1(const Nf4Matrix& w, const float* table, Index j, Index p) {
  const unsigned pair = w.codes[j * w.codes_ld + p / 2];
  return __fmul_rn(table[p % 2 == 0 ? pair >> 4 : pair & 15], scale_of(w, j, p));
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
