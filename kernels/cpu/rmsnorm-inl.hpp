// Rows of rmsnorm and of its gradients, shared by kernels that are given the reciprocal RMS and kernels that form it.
// Included once per SIMD target (Highway's convention for files named *-inl).
#if defined(ASSAY_KERNELS_CPU_RMSNORM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_RMSNORM_INL
#undef ASSAY_KERNELS_CPU_RMSNORM_INL
#else
#define ASSAY_KERNELS_CPU_RMSNORM_INL
#endif

#include <algorithm>
#include <cmath>

#include "hwy/highway.h"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

/// Returns 1 / sqrt(sum_j x[j]² / n + eps). Four vectors of partial sums keep additions independent. The order depends
/// on n alone.
template <class S>
float reciprocal_rms(const S* x, Index n, float eps) {
  const hn::ScalableTag<float> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  Index j = 0;
  for (; j + 4 * lanes <= n; j += 4 * lanes) {
    const auto x0 = load(d, x + j), x1 = load(d, x + j + lanes);
    const auto x2 = load(d, x + j + 2 * lanes), x3 = load(d, x + j + 3 * lanes);
    s0 = hn::MulAdd(x0, x0, s0);
    s1 = hn::MulAdd(x1, x1, s1);
    s2 = hn::MulAdd(x2, x2, s2);
    s3 = hn::MulAdd(x3, x3, s3);
  }
  for_each_vector(d, n - j, [&](Index first, std::size_t count) {
    const auto v = load_first(d, x + j + first, count);
    s0 = hn::MulAdd(v, v, s0);
  });
  const float squares = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  return 1.0F / std::sqrt(squares / static_cast<float>(n) + eps);
}

/// Computes, row by row, the projection, dx, and the terms of dweight, which is summed over rows in ascending order.
/// rrms_of(i, x) is the reciprocal RMS of row i, which begins at x.
template <class S, class Args, class F>
void rmsnorm_gradients(const Args& args, F rrms_of) {
  const hn::ScalableTag<float> d;
  const Index n = args.n, x_ld = row_stride(args.x), dy_ld = row_stride(args.dy), dx_ld = row_stride(args.dx);
  const auto* x = static_cast<const S*>(args.x.data());
  const auto* dy = static_cast<const S*>(args.dy.data());
  const float* const weight = args.weight.data();
  auto* dx = static_cast<S*>(args.dx.data());
  float* const dweight = args.dweight.data();
  std::fill_n(dweight, n, 0.0F);
  for (Index i = 0; i < args.rows; ++i, x += x_ld, dy += dy_ld, dx += dx_ld) {
    const auto scale = hn::Set(d, rrms_of(i, x));
    auto even = hn::Zero(d), odd = even;
    bool on_even = true;
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      const auto g = load_first(d, dy + j, count), normalized = hn::Mul(load_first(d, x + j, count), scale);
      const auto a = hn::Mul(g, load_first(d, weight + j, count));
      auto& sum = on_even ? even : odd;
      sum = hn::MulAdd(a, normalized, sum);
      on_even = !on_even;
      store_first(d, hn::MulAdd(g, normalized, load_first(d, dweight + j, count)), dweight + j, count);
    });
    const float projection = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
    const auto mean = hn::Set(d, projection / static_cast<float>(n));
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      const auto a = hn::Mul(load_first(d, dy + j, count), load_first(d, weight + j, count));
      const auto normalized = hn::Mul(load_first(d, x + j, count), scale);
      store_first(d, hn::Mul(scale, hn::NegMulAdd(normalized, mean, a)), dx + j, count);
    });
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
