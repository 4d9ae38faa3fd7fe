// y = A·x on the CPU. Every element of A is used once: bound by the bandwidth of reading A.
#include "ops/gemv.hpp"

#include <cblas.h>
#include <fmt/core.h>

#include <climits>

#include "serve/scratch.hpp"
#include "kernels/cpu/gemm.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemv.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_gemv::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// Computes the dot products of kRows rows of A with x. Each is two interleaved sums of vectors for any kRows, so that
/// the bits of y[i] do not depend on how rows are grouped.
template <int kRows, class S>
void dot_rows(Index k, const S* a, Index lda, const float* x, float* dot) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V even[kRows], odd[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) even[r] = odd[r] = hn::Zero(d);
  Index p = 0;
  for (; p + 2 * lanes <= k; p += 2 * lanes) {
    const V x_even = hn::LoadU(d, x + p);
    const V x_odd = hn::LoadU(d, x + p + lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      even[r] = hn::MulAdd(load(d, a + r * lda + p), x_even, even[r]);
      odd[r] = hn::MulAdd(load(d, a + r * lda + p + lanes), x_odd, odd[r]);
    }
  }
  for (; p < k; p += lanes) {
    const auto count = static_cast<std::size_t>(std::min(lanes, k - p));
    const V x_rest = load_first(d, x + p, count);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) even[r] = hn::MulAdd(load_first(d, a + r * lda + p, count), x_rest, even[r]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) dot[r] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[r], odd[r])));
}

template <class S>
void multiply_rows(Index m, Index k, const S* a, Index lda, const float* x, S* y, Index y_stride) {
  float dot[4];
  Index i = 0;
  for (; i + 4 <= m; i += 4) {
    dot_rows<4>(k, a + i * lda, lda, x, dot);
    for (int r = 0; r < 4; ++r) y[(i + r) * y_stride] = narrow<S>(dot[r]);
  }
  for (; i < m; ++i) {
    dot_rows<1>(k, a + i * lda, lda, x, dot);
    y[i * y_stride] = narrow<S>(dot[0]);
  }
}

/// y = A · x for x in float32, dense.
void multiply_vector(const ops::GemvArgs& args, const float* x) {
  with_storage(args.a.dtype(), [&]<class S>(S) {
    multiply_rows(args.m, args.k, args.a.as<const S>().data(), leading_dimension(args.a), x, args.y.as<S>().data(),
                  args.y.stride(0));
  });
}

}  // namespace
}  // namespace assay::cpu::of_gemv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_gemv {
namespace {

HWY_EXPORT(multiply_vector);

using ops::GemvArgs;

/// Returns the stride of a vector, or 1 for fewer than two elements: the given stride is then meaningless and may be 0,
/// which BLAS rejects.
Index increment(const StorageView& vector) { return vector.dim(0) > 1 ? vector.stride(0) : 1; }

/// Sets y = 0, the result for k = 0.
template <class S>
void clear(const GemvArgs& args) {
  const auto y = args.y.as<S>();
  for (Index i = 0; i < args.m; ++i) y(i) = narrow<S>(0.0F);
}

std::optional<std::string> openblas_refusal(const GemvArgs& args) {
  const Index largest = std::max({args.m, args.k, leading_dimension(args.a), increment(args.x), increment(args.y)});
  if (largest <= INT_MAX) return std::nullopt;
  return fmt::format("OpenBLAS counts in 32-bit integers: an extent or stride of {} is too large", largest);
}

/// The naive kernel by cblas_sgemv with alpha = 1, beta = 0, in OpenBLAS's own order of summation.
void openblas(const GemvArgs& args, Device&) {
  if (args.m == 0) return;
  if (args.k == 0) return clear<float>(args);
  cblas_sgemv(CblasRowMajor, CblasNoTrans, static_cast<int>(args.m), static_cast<int>(args.k), 1.0F,
              args.a.as<const float>().data(), static_cast<int>(leading_dimension(args.a)),
              args.x.as<const float>().data(), static_cast<int>(increment(args.x)), 0.0F, args.y.as<float>().data(),
              static_cast<int>(increment(args.y)));
}

/// The naive kernel in SIMD, four rows at a time; x is gathered once into scratch memory of k floats unless it is dense
/// and float32.
template <class S>
void highway(const GemvArgs& args, Device&) {
  if (args.m == 0) return;
  if (args.k == 0) return clear<S>(args);
  const auto vector = args.x.as<const S>();
  const bool dense = std::is_same_v<S, float> && increment(args.x) == 1;
  const Scratch<float> gathered(dense ? 0 : static_cast<std::size_t>(args.k));
  if (!dense)
    for (Index p = 0; p < args.k; ++p) gathered.data()[p] = widen(vector(p));
  HWY_DYNAMIC_DISPATCH(multiply_vector)
  (args, dense ? static_cast<const float*>(args.x.data()) : gathered.data());
}

/// highway, unless A is so large that OpenBLAS gains from reading it with several threads.
void dispatch(const GemvArgs& args, Device& device) {
  constexpr Index kOneThread = 256 * 512;  // measured by tests/bench
  if (args.m * args.k <= kOneThread || openblas_refusal(args)) return highway<float>(args, device);
  openblas(args, device);
}

const KernelRegistration openblas_kernel{{.id = "gemv/cpu/openblas",
                                          .batch_invariant = false,
                                          .summary = "cblas_sgemv",
                                          .run = &run_typed<GemvArgs, &openblas>,
                                          .refuse = &refuse_typed<GemvArgs, &openblas_refusal>}};
template <class S>
KernelRegistration highway_kernel(DType storage, std::string_view id, int priority) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "four rows at a time, two vector sums per row, one thread",
                             .run = &run_typed<GemvArgs, &highway<S>>,
                             .priority = priority});
}
const KernelRegistration highway_kernels[] = {highway_kernel<float>(DType::f32, "gemv/cpu/highway", 0),
                                              highway_kernel<Half>(DType::f16, "gemv/cpu/highway_f16", 1),
                                              highway_kernel<BFloat16>(DType::bf16, "gemv/cpu/highway_bf16", 1)};
const KernelRegistration dispatch_kernel{{.id = "gemv/cpu/dispatch",
                                          .batch_invariant = false,
                                          .summary = "highway for small matrices, else OpenBLAS",
                                          .run = &run_typed<GemvArgs, &dispatch>,
                                          .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_gemv
#endif
