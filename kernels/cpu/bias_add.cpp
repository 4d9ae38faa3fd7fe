// y = x + bias on the CPU.
#include "ops/bias_add.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bias_add.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_bias_add::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

struct Sum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V bias) const {
    return hn::Add(x, bias);
  }
};

void bias_add_rows(Index m, Index n, Rows<float> y, Rows<const float> x, Rows<const float> bias) {
  map_rows(m, n, Sum{}, y, x, bias);
}

}  // namespace
}  // namespace assay::cpu::of_bias_add::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_bias_add {
namespace {

HWY_EXPORT(bias_add_rows);

using ops::BiasAddArgs;

/// The naive kernel in SIMD: one pass, tails by masks.
void highway(const BiasAddArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(bias_add_rows)
  (args.m, args.n, rows_of(args.y), Rows<const float>{args.x.data(), rows_of(args.x).ld},
   Rows<const float>{args.bias.data(), 0});
}

const KernelRegistration highway_kernel{{.id = "bias_add/cpu/highway",
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<BiasAddArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_bias_add
#endif
