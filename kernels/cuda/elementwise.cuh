// Maps over the elements of row-major matrices: one pass, four elements a thread if all rows are aligned to four.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// out[i,j] = f(in0[i,j], ..) for an m x n matrix of S; the last input is of Last. Element (i, j) of each is at
/// i * ld + j, and ld = 0 broadcasts a row. `out` may be one of the inputs. Offsets take 64 bits.
template <int inputs, class S = float, class Last = S>
struct Map {
  Index m, n;
  const void* in[inputs];
  Index in_ld[inputs];
  S* out;
  Index out_ld;

  /// One or four elements of input k.
  __device__ float one(int k, Index at) const {
    return k + 1 == inputs ? load(static_cast<const Last*>(in[k])[at]) : load(static_cast<const S*>(in[k])[at]);
  }
  __device__ float4 four(int k, Index at) const {
    return k + 1 == inputs ? load4<Last>(static_cast<const Last*>(in[k]) + at, 0, 4, true)
                           : load4<S>(static_cast<const S*>(in[k]) + at, 0, 4, true);
  }
  /// True if every row of input k starts at a multiple of four elements.
  bool aligned(int k, Index ld) const {
    return k + 1 == inputs ? rows_aligned(static_cast<const Last*>(in[k]), ld)
                           : rows_aligned(static_cast<const S*>(in[k]), ld);
  }
};

/// F: `__device__ float operator()(const float (&x)[inputs]) const`. Threads in x walk columns, threads in y walk rows.
template <class F, int inputs, class S, class Last, bool vectors>
__global__ void __launch_bounds__(256) map_kernel(Map<inputs, S, Last> a, F f) {
  constexpr Index kWidth = vectors ? 4 : 1;
  const Index column_step = Index{gridDim.x} * blockDim.x * kWidth, row_step = Index{gridDim.y} * blockDim.y;
  let_next_begin();
  await_previous();
  for (Index i = Index{blockIdx.y} * blockDim.y + threadIdx.y; i < a.m; i += row_step)
    for (Index j = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth; j < a.n; j += column_step) {
      float x[inputs];
      S* const out = a.out + i * a.out_ld + j;
      if constexpr (vectors) {
        if (j + 4 <= a.n) {
          float4 v[inputs], r;
#pragma unroll
          for (int k = 0; k < inputs; ++k) v[k] = a.four(k, i * a.in_ld[k] + j);
#pragma unroll
          for (int k = 0; k < inputs; ++k) x[k] = v[k].x;
          r.x = f(x);
#pragma unroll
          for (int k = 0; k < inputs; ++k) x[k] = v[k].y;
          r.y = f(x);
#pragma unroll
          for (int k = 0; k < inputs; ++k) x[k] = v[k].z;
          r.z = f(x);
#pragma unroll
          for (int k = 0; k < inputs; ++k) x[k] = v[k].w;
          r.w = f(x);
          store4<S>(out, 0, 4, true, r);
          continue;
        }
      }
      for (Index l = 0; l < kWidth && j + l < a.n; ++l) {
#pragma unroll
        for (int k = 0; k < inputs; ++k) x[k] = a.one(k, i * a.in_ld[k] + j + l);
        store(out[l], f(x));
      }
    }
}

template <class F, int inputs, class S, class Last>
void map(Map<inputs, S, Last> a, const F& f, Device& device) {
  if (a.m == 0 || a.n == 0) return;
  bool dense = a.out_ld == a.n, vectors = rows_aligned(a.out, a.out_ld);
  for (int k = 0; k < inputs; ++k) {
    dense = dense && a.in_ld[k] == a.n;
    vectors = vectors && a.aligned(k, a.in_ld[k]);
  }
  if (dense) {
    a.n *= a.m;
    a.m = 1;
    vectors = rows_aligned(a.out, 0);
    for (int k = 0; k < inputs; ++k) vectors = vectors && a.aligned(k, 0);
  }
  const Index chunks = vectors ? (a.n + 3) / 4 : a.n;
  unsigned wide = 8;
  while (wide < 256 && wide < chunks) wide *= 2;
  const dim3 block(wide, 256 / wide);
  const dim3 grid(static_cast<unsigned>(std::min<Index>((chunks + wide - 1) / wide, Index{1} << 24)),
                  static_cast<unsigned>(std::min<Index>((a.m + block.y - 1) / block.y, 65535)));
  launch_overlapping(vectors ? &map_kernel<F, inputs, S, Last, true> : &map_kernel<F, inputs, S, Last, false>,
                     {grid, block}, device, a, f);
}

/// Returns the leading dimension of a row-major matrix; the stride of a single row is meaningless.
template <AnyView V>
Index leading(const V& matrix) {
  return matrix.dim(0) > 1 ? matrix.stride(0) : matrix.dim(1);
}

template <class S = float, AnyView Out, class... In>
Map<sizeof...(In), S> map_of(const Out& out, const In&... in) {
  return {out.dim(0), out.dim(1), {in.data()...}, {leading(in)...}, static_cast<S*>(out.data()), leading(out)};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
