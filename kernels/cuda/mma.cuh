// Warp-level products on tensor cores by the PTX instruction mma.sync, with operands from rows in shared memory. Of a
// 16x8 tile of outputs, lane l holds row l / 4, columns 2 (l % 4) and 2 (l % 4) + 1, and the same columns of row l / 4
// + 8.
#pragma once

#include <bit>
#include <string>
#include <type_traits>

#include "core/arithmetic.hpp"
#include "runtime/cuda/launch.hpp"
// After launch.hpp, which names the namespace.
#include "kernels/cuda/storage.cuh"
#if !defined(__CUDACC__)
#include "runtime/cuda_host/wmma.hpp"
#endif

namespace assay::ASSAY_CUDA_NAMESPACE {

namespace mma_detail {

#if defined(__CUDACC__)
/// ldmatrix: four 8x8 matrices of 16-bit numbers; lane l gives the address of row l % 8 of matrix l / 8.
template <bool transposed>
__device__ inline void load_matrices(unsigned (&to)[4], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

#define ASSAY_MMA(shape, type)                                \
  asm("mma.sync.aligned." shape ".row.col.f32." type "." type \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "   \
      "{%0, %1, %2, %3};"                                     \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])        \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

/// d += a b.
template <class S>
__device__ inline void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  if constexpr (std::is_same_v<S, Half>) ASSAY_MMA("m16n8k16", "f16");
  else if constexpr (std::is_same_v<S, BFloat16>) ASSAY_MMA("m16n8k16", "bf16");
  else ASSAY_MMA("m16n8k8", "tf32");
}
#undef ASSAY_MMA
#else
using cuda_host::Site;

template <bool transposed>
void load_matrices(unsigned (&to)[4], const void* row, Site site = Site::current()) {
  cuda_host::load_matrices(to, row, transposed, site);
}
template <class S>
void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Site site = Site::current()) {
  using cuda_host::MmaInputs;
  cuda_host::mma(std::is_same_v<S, Half>       ? MmaInputs::f16
                 : std::is_same_v<S, BFloat16> ? MmaInputs::bf16
                                               : MmaInputs::tf32,
                 a, b, d, site);
}
#endif

/// Two numbers, rounded to nearest, in one register.
template <class S>
__device__ inline unsigned packed(float low, float high) {
  S two[2];
  store(two[0], low);
  store(two[1], high);
  return two[0].bits | static_cast<unsigned>(two[1].bits) << 16;
}

}  // namespace mma_detail

/// Tensor core operands from rows of S in shared memory. A step covers kDepth terms of a sum. `pitch` (elements) is 16
/// bytes more than a multiple of 128 or 64 bytes, so that lanes access different banks and rows start at multiples of
/// 16 bytes.
template <class S>
struct TensorCore {
  static constexpr int kDepth = 16;
  struct Left {
    unsigned x[4];
  };
  /// Two adjacent operands.
  struct Right {
    unsigned x[2][2];
  };

  /// Loads 16 rows; `at` is the next element of the first.
  __device__ static Left rows(const S* at, int pitch) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Left left;
    mma_detail::load_matrices<false>(left.x, at + lane % 16 * pitch + lane / 16 * 8);
    return left;
  }
  /// Loads kDepth rows of 16 elements, the 16 rows of the operand: sums run across the rows.
  __device__ static Left columns_as_rows(const S* at, int pitch) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Left left;
    mma_detail::load_matrices<true>(left.x, at + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 8);
    return left;
  }
  /// Loads 16 rows as columns: sums run along the rows.
  __device__ static Right rows_as_columns(const S* at, int pitch) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned x[4];
    mma_detail::load_matrices<false>(x, at + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 8);
    return {{{x[0], x[1]}, {x[2], x[3]}}};
  }
  /// Loads kDepth rows of 16 elements: sums run across the rows.
  __device__ static Right rows_as_rows(const S* at, int pitch) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned x[4];
    mma_detail::load_matrices<true>(x, at + lane % 16 * pitch + lane / 16 * 8);
    return {{{x[0], x[1]}, {x[2], x[3]}}};
  }
  /// Rounds kDepth columns of outputs to S.
  __device__ static Left outputs(const float (*tiles)[4]) {
    using mma_detail::packed;
    return {{packed<S>(tiles[0][0], tiles[0][1]), packed<S>(tiles[0][2], tiles[0][3]),
             packed<S>(tiles[1][0], tiles[1][1]), packed<S>(tiles[1][2], tiles[1][3])}};
  }
  __device__ static void multiply(float (&d)[4], const Left& a, const unsigned (&b)[2]) {
    mma_detail::multiply<S>(d, a.x, b);
  }
};

/// Float32 products by three products of TF32: x = h + l with the upper 11 bits in h, x y ~ h h' + h l' + l h'
/// (Format::tf32x3). Inf and NaN become NaN.
template <>
struct TensorCore<float> {
  static constexpr int kDepth = 8;
  struct Left {
    float x[4];
  };
  struct Right {
    float x[2][2];
  };

  __device__ static Left rows(const float* at, int pitch) {
    const int row = static_cast<int>(threadIdx.x) % 32 / 4, k = static_cast<int>(threadIdx.x) % 4;
    const float *const upper = at + row * pitch + k, *const lower = upper + 8 * pitch;
    return {{upper[0], lower[0], upper[4], lower[4]}};
  }
  __device__ static Right rows_as_columns(const float* at, int pitch) {
    const int row = static_cast<int>(threadIdx.x) % 32 / 4, k = static_cast<int>(threadIdx.x) % 4;
    const float *const first = at + row * pitch + k, *const second = first + 8 * pitch;
    return {{{first[0], first[4]}, {second[0], second[4]}}};
  }
  /// Terms k and k + 4 of the sum are rows 2 k and 2 k + 1, as in `outputs`: the order of terms is free.
  __device__ static Right rows_as_rows(const float* at, int pitch) {
    const int column = static_cast<int>(threadIdx.x) % 32 / 4, k = static_cast<int>(threadIdx.x) % 4;
    const float *const first = at + 2 * k * pitch + column, *const second = first + pitch;
    return {{{first[0], second[0]}, {first[8], second[8]}}};
  }
  __device__ static Left outputs(const float (*tiles)[4]) {
    return {{tiles[0][0], tiles[0][2], tiles[0][1], tiles[0][3]}};
  }

  __device__ static void multiply(float (&d)[4], const Left& a, const float (&b)[2]) {
    unsigned upper_a[4], lower_a[4], upper_b[2], lower_b[2];
#pragma unroll
    for (int i = 0; i < 4; ++i) split(a.x[i], upper_a[i], lower_a[i]);
#pragma unroll
    for (int i = 0; i < 2; ++i) split(b[i], upper_b[i], lower_b[i]);
    mma_detail::multiply<float>(d, lower_a, upper_b);
    mma_detail::multiply<float>(d, upper_a, lower_b);
    mma_detail::multiply<float>(d, upper_a, upper_b);
  }

 private:
  /// Splits x so that the tensor core takes the upper 11 bits of each part.
  __device__ static void split(float x, unsigned& upper, unsigned& lower) {
    upper = __float_as_uint(x) & 0xffffe000U;
    lower = __float_as_uint(x - __uint_as_float(upper));
  }
};

/// out[n] = dot products of 16 rows x with rows y, 8 n .. 8 n + 7, over d elements; zeros if none of these is among the
/// first `rows`. Reads whole steps: rows hold zeros past d.
template <class S, int tiles>
__device__ inline void dot_rows(const S* x, const S* y, int pitch, int rows, int d, float (&out)[tiles][4]) {
  using Core = TensorCore<S>;
#pragma unroll
  for (int n = 0; n < tiles; ++n) out[n][0] = out[n][1] = out[n][2] = out[n][3] = 0.0f;
#pragma unroll 4
  for (int k = 0; k < d; k += Core::kDepth) {
    const auto left = Core::rows(x + k, pitch);
#pragma unroll
    for (int n = 0; n < tiles; n += 2) {
      if (8 * n >= rows) break;
      const auto right = Core::rows_as_columns(y + 8 * n * pitch + k, pitch);
      Core::multiply(out[n], left, right.x[0]);
      Core::multiply(out[n + 1], left, right.x[1]);
    }
  }
}

/// sums[n] += weights times columns 8 n .. 8 n + 7 of the first `rows` rows of y; the other rows hold zeros.
template <class S, int tiles, int columns>
__device__ inline void add_weighted_rows(const float (&weights)[tiles][4], const S* y, int pitch, int rows, int d,
                                         float (&sums)[columns][4]) {
  using Core = TensorCore<S>;
#pragma unroll
  for (int j = 0; j < 8 * tiles; j += Core::kDepth) {
    if (j >= rows) break;
    const auto left = Core::outputs(weights + j / 8);
#pragma unroll
    for (int n = 0; n < columns; n += 2) {
      if (8 * n >= d) break;
      const auto right = Core::rows_as_rows(y + j * pitch + 8 * n, pitch);
      Core::multiply(sums[n], left, right.x[0]);
      Core::multiply(sums[n + 1], left, right.x[1]);
    }
  }
}

/// Arithmetic of tensor core products: 16-bit inputs are exact, intermediate factors are rounded to the same format,
/// and float32 takes three products of TF32. Sums are truncated (kTf32Arithmetic gives the source).
template <class S>
constexpr Arithmetic mma_arithmetic() {
  return {.inputs = std::is_same_v<S, Half>       ? Format::f16
                    : std::is_same_v<S, BFloat16> ? Format::bf16
                                                  : Format::tf32x3,
          .accumulation = Rounding::toward_zero,
          .block = 4,
          .functions = FunctionLibrary::cuda};
}

/// Throws Unavailable below compute capability 8.0.
inline void need_mma([[maybe_unused]] std::string_view kernel, [[maybe_unused]] Device& device) {
#if defined(__CUDACC__)
  if (const int capability = static_cast<CudaDevice&>(device).compute_capability(); capability < 80)
    throw Unavailable(std::string(kernel), "its tensor instructions need compute capability 8.0; this device has " +
                                               std::to_string(capability / 10) + "." + std::to_string(capability % 10));
#endif
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
