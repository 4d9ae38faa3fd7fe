// The gradient of rows of a table by index on the CPU.
#include "ops/embedding_backward.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embedding_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_embedding_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

struct Sum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V y) const {
    return hn::Add(x, y);
  }
};

struct Zero {
  template <class D>
  HWY_INLINE auto operator()(D d) const {
    return hn::Zero(d);
  }
};

void sum_rows(const ops::EmbeddingBackwardArgs& args) {
  const Rows<float> dtable = rows_of(args.dtable);
  map_rows(args.v, args.h, Zero{}, dtable);
  with_storage(args.dy.dtype(), [&]<class S>(S) {
    const Rows<const S> dy = rows_of<const S>(args.dy);
    for (Index t = 0; t < args.t; ++t) {
      float* const sum = dtable.data + args.ids(t) * dtable.ld;
      map_row(args.h, false, Sum{}, sum, sum, dy.data + t * dy.ld);
    }
  });
}

}  // namespace
}  // namespace assay::cpu::of_embedding_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_embedding_backward {
namespace {

HWY_EXPORT(sum_rows);

using ops::EmbeddingBackwardArgs;

/// The naive kernel in SIMD; the same order of summation.
void highway(const EmbeddingBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(sum_rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "SIMD along rows, tokens in order",
                             .run = &run_typed<EmbeddingBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "embedding_backward/cpu/highway"),
    add(DType::f16, "embedding_backward/cpu/highway_f16"),
    add(DType::bf16, "embedding_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_embedding_backward
#endif
