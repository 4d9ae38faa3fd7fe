// Gradients of rmsnorm from x and eps alone on the CPU. Each row is read three times; all but the first hit the cache.
#include "ops/rmsnorm_eps_backward.hpp"

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rmsnorm_eps_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/rmsnorm-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_rmsnorm_eps_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void rmsnorm_eps_backward_rows(const ops::RmsnormEpsBackwardArgs& args) {
  with_storage(args.x.dtype(), [&]<class S>(S) {
    rmsnorm_gradients<S>(args,
                         [&](Index, const S* x) { return reciprocal_rms(x, args.n, static_cast<float>(args.eps)); });
  });
}

}  // namespace
}  // namespace assay::cpu::of_rmsnorm_eps_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_rmsnorm_eps_backward {
namespace {

HWY_EXPORT(rmsnorm_eps_backward_rows);

using ops::RmsnormEpsBackwardArgs;

/// The naive kernel in SIMD.
void highway(const RmsnormEpsBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rmsnorm_eps_backward_rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "four vector sums a row, then both gradients, one thread",
                             .run = &run_typed<RmsnormEpsBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "rmsnorm_eps_backward/cpu/highway"),
    add(DType::f16, "rmsnorm_eps_backward/cpu/highway_f16"),
    add(DType::bf16, "rmsnorm_eps_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_rmsnorm_eps_backward
#endif
