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

void clear(Index m, Index n, Rows<float> matrix) { map_rows(m, n, Zero{}, matrix); }

void add_row(Index n, float* sum, const float* x) {
  map_rows(1, n, Sum{}, Rows<float>{sum, n}, Rows<const float>{sum, n}, Rows<const float>{x, n});
}

}  // namespace
}  // namespace assay::cpu::of_embedding_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_embedding_backward {
namespace {

HWY_EXPORT(add_row);
HWY_EXPORT(clear);

using ops::EmbeddingBackwardArgs;

/// The naive kernel in SIMD; the same order of summation.
void highway(const EmbeddingBackwardArgs& args, Device&) {
  const Rows<const float> dy{args.dy.data(), rows_of(args.dy).ld};
  const Rows<float> dtable = rows_of(args.dtable);
  HWY_DYNAMIC_DISPATCH(clear)(args.v, args.h, dtable);
  for (Index t = 0; t < args.t; ++t)
    HWY_DYNAMIC_DISPATCH(add_row)(args.h, dtable.data + args.ids(t) * dtable.ld, dy.data + t * dy.ld);
}

const KernelRegistration highway_kernel{{.id = "embedding_backward/cpu/highway",
                                         .summary = "SIMD along rows, tokens in order",
                                         .run = &run_typed<EmbeddingBackwardArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_embedding_backward
#endif
