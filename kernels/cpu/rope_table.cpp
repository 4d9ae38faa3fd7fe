// Rotary position embedding by given cosines and sines, and its gradient, on the CPU.
#include "ops/rope_table.hpp"

#include "kernels/rope_table.hpp"
#include "ops/rope_table_backward.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope_table.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/rotate-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_rope_table::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void rotate_rows(const RopeTableCall& call) {
  struct CosSin {
    float cos, sin;
  };
  const Index cosine_step = table_step(call.cosines), sine_step = table_step(call.sines);
  const auto cos_sin_of = [&](Index row) {
    const float* const cosines = call.cosines.data() + call.positions(row) * cosine_step;
    const float* const sines = call.sines.data() + call.positions(row) * sine_step;
    return [=](Index i) { return CosSin{cosines[i], sines[i]}; };
  };
  with_storage(call.from.dtype(), [&]<class S>(S) { rotate_all<S>(call, cos_sin_of); });
}

}  // namespace
}  // namespace assay::cpu::of_rope_table::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_rope_table {
namespace {

HWY_EXPORT(rotate_rows);

/// The naive kernel in SIMD along the pairs of a head.
template <class Args>
void highway(const Args& args, Device&) {
  HWY_DYNAMIC_DISPATCH(rotate_rows)(rope_table_call(args));
}

template <class Args>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "a row of the tables once, then SIMD over heads",
                             .run = &run_typed<Args, &highway<Args>>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add<ops::RopeTableArgs>(DType::f32, "rope_table/cpu/highway"),
    add<ops::RopeTableArgs>(DType::f16, "rope_table/cpu/highway_f16"),
    add<ops::RopeTableArgs>(DType::bf16, "rope_table/cpu/highway_bf16"),
    add<ops::RopeTableBackwardArgs>(DType::f32, "rope_table_backward/cpu/highway"),
    add<ops::RopeTableBackwardArgs>(DType::f16, "rope_table_backward/cpu/highway_f16"),
    add<ops::RopeTableBackwardArgs>(DType::bf16, "rope_table_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_rope_table
#endif
