// Gradients of rmsnorm on the CPU.
#include "ops/rmsnorm_backward.hpp"

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rmsnorm_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/rmsnorm-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_rmsnorm_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void rmsnorm_backward_rows(const ops::RmsnormBackwardArgs& args) {
  with_storage(args.x.dtype(),
               [&]<class S>(S) { rmsnorm_gradients<S>(args, [&](Index i, const S*) { return args.rrms.data()[i]; }); });
}

}  // namespace
}  // namespace assay::cpu::of_rmsnorm_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_rmsnorm_backward {
namespace {

HWY_EXPORT(rmsnorm_backward_rows);

using ops::RmsnormBackwardArgs;

/// The naive kernel in SIMD.
void highway(const RmsnormBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rmsnorm_backward_rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "both gradients in one pass over rows, one thread",
                             .run = &run_typed<RmsnormBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "rmsnorm_backward/cpu/highway"),
    add(DType::f16, "rmsnorm_backward/cpu/highway_f16"),
    add(DType::bf16, "rmsnorm_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_rmsnorm_backward
#endif
