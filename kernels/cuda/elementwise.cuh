// Maps over the elements of row-major matrices: one pass, 16 bytes a thread if all rows are aligned to 16 bytes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/view.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// out[i,j] = f(in0[i,j], ..) for an m x n matrix. Element (i, j) of each is at i * ld + j, and ld = 0 broadcasts a
/// row. `out` may be one of the inputs. Offsets take 64 bits.
template <int inputs>
struct Map {
  Index m, n;
  const float* in[inputs];
  Index in_ld[inputs];
  float* out;
  Index out_ld;
};

/// F: `__device__ float operator()(const float (&x)[inputs]) const`. Threads in x walk columns, threads in y walk rows.
template <class F, int inputs, bool vectors>
__global__ void __launch_bounds__(256) map_kernel(Map<inputs> a, F f) {
  constexpr Index kWidth = vectors ? 4 : 1;
  const Index column_step = Index{gridDim.x} * blockDim.x * kWidth, row_step = Index{gridDim.y} * blockDim.y;
  for (Index i = Index{blockIdx.y} * blockDim.y + threadIdx.y; i < a.m; i += row_step)
    for (Index j = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth; j < a.n; j += column_step) {
      float x[inputs];
      float* const out = a.out + i * a.out_ld + j;
      if constexpr (vectors) {
        if (j + 4 <= a.n) {
          float4 v[inputs], r;
#pragma unroll
          for (int k = 0; k < inputs; ++k) v[k] = *reinterpret_cast<const float4*>(a.in[k] + i * a.in_ld[k] + j);
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
          *reinterpret_cast<float4*>(out) = r;
          continue;
        }
      }
      for (Index l = 0; l < kWidth && j + l < a.n; ++l) {
#pragma unroll
        for (int k = 0; k < inputs; ++k) x[k] = a.in[k][i * a.in_ld[k] + j + l];
        out[l] = f(x);
      }
    }
}

/// Returns true if every row starts at a multiple of 16 bytes.
inline bool rows_aligned(const float* data, Index ld) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && ld % 4 == 0;
}

template <class F, int inputs>
void map(Map<inputs> a, const F& f, Device& device) {
  if (a.m == 0 || a.n == 0) return;
  bool dense = a.out_ld == a.n, vectors = rows_aligned(a.out, a.out_ld);
  for (int k = 0; k < inputs; ++k) {
    dense = dense && a.in_ld[k] == a.n;
    vectors = vectors && rows_aligned(a.in[k], a.in_ld[k]);
  }
  if (dense) {
    a.n *= a.m;
    a.m = 1;
    vectors = rows_aligned(a.out, 0);
    for (int k = 0; k < inputs; ++k) vectors = vectors && rows_aligned(a.in[k], 0);
  }
  const Index chunks = vectors ? (a.n + 3) / 4 : a.n;
  unsigned wide = 8;
  while (wide < 256 && wide < chunks) wide *= 2;
  const dim3 block(wide, 256 / wide);
  const dim3 grid(static_cast<unsigned>(std::min<Index>((chunks + wide - 1) / wide, Index{1} << 24)),
                  static_cast<unsigned>(std::min<Index>((a.m + block.y - 1) / block.y, 65535)));
  launch(vectors ? &map_kernel<F, inputs, true> : &map_kernel<F, inputs, false>, {grid, block}, device, a, f);
}

/// Returns the leading dimension of a row-major matrix; the stride of a single row is meaningless.
template <class T>
Index leading(const View<T>& matrix) {
  return matrix.dim(0) > 1 ? matrix.stride(0) : matrix.dim(1);
}

template <class... In>
Map<sizeof...(In)> map_of(const View<float>& out, const In&... in) {
  return {out.dim(0), out.dim(1), {in.data()...}, {leading(in)...}, out.data(), leading(out)};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
