// Rotary position embedding and its gradient, the rotation back, on the CPU.
#include "ops/rope.hpp"

#include <vector>

#include "kernels/rope.hpp"
#include "ops/rope_backward.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/rotate-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_rope::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void rotate_rows(const RopeCall& call) {
  const std::vector<RopeFrequency>& frequencies = rope_frequencies(call.theta, call.d, call.float32_angle);
  const auto cos_sin_of = [&](Index row) {
    return [&, position = call.positions(row)](Index i) {
      return rope_cos_sin(frequencies[static_cast<std::size_t>(i)], position, call.float32_angle);
    };
  };
  with_storage(call.from.dtype(), [&]<class S>(S) { rotate_all<S>(call, cos_sin_of); });
}

}  // namespace
}  // namespace assay::cpu::of_rope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_rope {
namespace {

HWY_EXPORT(rotate_rows);

/// Rotates every pair of every head by the angles of core/rope.hpp; kernels/rope.hpp computes their cosines and
/// sines.
///   (rows,heads,d) twice: float32, binary16 or bfloat16, heads dense; positions (rows) from 0 to 2^20 - 1; no memory
///   is shared.
template <class Args>
void highway(const Args& args, Device&) {
  HWY_DYNAMIC_DISPATCH(rotate_rows)(rope_call(args));
}

template <class Args>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::octant},
                             .storage = storage,
                             .summary = "cosines and sines once a row, then SIMD over heads",
                             .run = &run_typed<Args, &highway<Args>>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add<ops::RopeArgs>(DType::f32, "rope/cpu/highway"),
    add<ops::RopeArgs>(DType::f16, "rope/cpu/highway_f16"),
    add<ops::RopeArgs>(DType::bf16, "rope/cpu/highway_bf16"),
    add<ops::RopeBackwardArgs>(DType::f32, "rope_backward/cpu/highway"),
    add<ops::RopeBackwardArgs>(DType::f16, "rope_backward/cpu/highway_f16"),
    add<ops::RopeBackwardArgs>(DType::bf16, "rope_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_rope
#endif
