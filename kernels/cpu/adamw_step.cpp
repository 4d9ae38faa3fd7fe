// One step of AdamW on the CPU. Reads four vectors and writes three, and a copy of one where it is asked for: bound by
// memory bandwidth.
#include "ops/adamw_step.hpp"

#include <cmath>

#include "kernels/adamw_constants.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw_step.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_adamw_step::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// The step, and the new p in S to `rounded` unless that is null.
template <class S>
void step_to(Index n, const AdamwConstants& c, float* p, float* m, float* v, const float* g, S* rounded) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const V keep1 = hn::Set(d, c.keep1), take1 = hn::Set(d, c.take1), keep2 = hn::Set(d, c.keep2),
          take2 = hn::Set(d, c.take2), decay = hn::Set(d, c.decay), size = hn::Set(d, c.size),
          scale = hn::Set(d, c.scale), eps = hn::Set(d, c.eps);
  const auto step = [&](V& vp, V& vm, V& vv, V vg) HWY_ATTR {
    vm = hn::MulAdd(keep1, vm, hn::Mul(take1, vg));
    vv = hn::MulAdd(keep2, vv, hn::Mul(hn::Mul(take2, vg), vg));
    vp = hn::NegMulAdd(size, hn::Div(vm, hn::MulAdd(hn::Sqrt(vv), scale, eps)), hn::Mul(decay, vp));
  };
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    V vp = hn::LoadU(d, p + i), vm = hn::LoadU(d, m + i), vv = hn::LoadU(d, v + i);
    step(vp, vm, vv, hn::LoadU(d, g + i));
    hn::StoreU(vp, d, p + i);
    hn::StoreU(vm, d, m + i);
    hn::StoreU(vv, d, v + i);
    if (rounded != nullptr) store(d, vp, rounded + i);
  }
  if (i == n) return;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(n - i));
  V vp = load_masked(d, p + i, rest), vm = load_masked(d, m + i, rest), vv = load_masked(d, v + i, rest);
  step(vp, vm, vv, load_masked(d, g + i, rest));
  store_masked(vp, d, p + i, rest);
  store_masked(vm, d, m + i, rest);
  store_masked(vv, d, v + i, rest);
  if (rounded != nullptr) store_first(d, vp, rounded + i, static_cast<std::size_t>(n - i));
}

void step_all(const ops::AdamwStepArgs& args, const AdamwConstants& c) {
  with_storage(args.rounded.dtype(), [&]<class S>(S) {
    step_to(args.n, c, args.p.data(), args.m.data(), args.v.data(), args.g.data(),
            args.copies > 0 ? args.rounded.as<S>().data() : nullptr);
  });
}

}  // namespace
}  // namespace assay::cpu::of_adamw_step::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_adamw_step {
namespace {

HWY_EXPORT(step_all);

using ops::AdamwStepArgs;

void highway(const AdamwStepArgs& args, Device&) {
  if (args.n == 0) return;
  HWY_DYNAMIC_DISPATCH(step_all)(args, adamw_constants(args));
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway},
                             .storage = storage,
                             .summary = "one vector loop, one thread",
                             .run = &run_typed<AdamwStepArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {add(DType::f32, "adamw_step/cpu/highway"),
                                            add(DType::f16, "adamw_step/cpu/highway_f16"),
                                            add(DType::bf16, "adamw_step/cpu/highway_bf16")};

}  // namespace
}  // namespace assay::cpu::of_adamw_step
#endif
