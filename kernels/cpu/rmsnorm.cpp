// Root mean square normalization on the CPU. Each row is read twice, for its sum of squares and for its elements; the
// second read hits the cache.
#include "ops/rmsnorm.hpp"

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rmsnorm.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/rmsnorm-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_rmsnorm::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

template <class S>
void normalize(const ops::RmsnormArgs& args) {
  const hn::ScalableTag<float> d;
  const Index n = args.n, x_ld = row_stride(args.x), y_ld = row_stride(args.y);
  const auto* x = static_cast<const S*>(args.x.data());
  auto* y = static_cast<S*>(args.y.data());
  const float* const weight = args.weight.data();
  for (Index i = 0; i < args.rows; ++i, x += x_ld, y += y_ld) {
    const float rrms = reciprocal_rms(x, n, static_cast<float>(args.eps));
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
