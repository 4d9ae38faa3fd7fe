// Root mean square normalization on the CPU. Each row is read twice, for its sum of squares and for its elements; the
// second read hits the cache.
#include "ops/rmsnorm.hpp"

#include <cmath>

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rmsnorm.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_rmsnorm::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// Four vectors of partial sums keep additions independent. The order depends on n alone.
template <class S>
float sum_of_squares(const S* x, Index n) {
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
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

template <class S>
void normalize(const ops::RmsnormArgs& args) {
  const hn::ScalableTag<float> d;
  const Index n = args.n, x_ld = row_stride(args.x), y_ld = row_stride(args.y);
  const auto* x = static_cast<const S*>(args.x.data());
  auto* y = static_cast<S*>(args.y.data());
  const float* const weight = args.weight.data();
  for (Index i = 0; i < args.rows; ++i, x += x_ld, y += y_ld) {
    const float mean_square = sum_of_squares(x, n) / static_cast<float>(n);
    const float rrms = 1.0F / std::sqrt(mean_square + static_cast<float>(args.eps));
    args.rrms.data()[i] = rrms;
    const auto scale = hn::Set(d, rrms);
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      const auto normalized = hn::Mul(load_first(d, x + j, count), scale);
      store_first(d, hn::Mul(normalized, load_first(d, weight + j, count)), y + j, count);
    });
  }
}

void rmsnorm_rows(const ops::RmsnormArgs& args) {
  with_storage(args.x.dtype(), [&]<class S>(S) { normalize<S>(args); });
}

}  // namespace
}  // namespace assay::cpu::of_rmsnorm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_rmsnorm {
namespace {

HWY_EXPORT(rmsnorm_rows);

using ops::RmsnormArgs;

/// The naive kernel in SIMD, four vector sums per row.
void highway(const RmsnormArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rmsnorm_rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "four vector sums a row, one thread",
                             .run = &run_typed<RmsnormArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "rmsnorm/cpu/highway"),
    add(DType::f16, "rmsnorm/cpu/highway_f16"),
    add(DType::bf16, "rmsnorm/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_rmsnorm
#endif
