// y[t] = table[ids[t]] on the CPU.
#include "ops/embedding.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embedding.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_embedding::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// Copies bits by loads and stores: NaN payloads survive.
struct Copy {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return x;
  }
};

void gather(Index tokens, Index n, const std::int32_t* ids, Rows<const float> table, Rows<float> y) {
  const bool stream = tokens * n >= kStreamedElements;
  for (Index t = 0; t < tokens; ++t) map_row(n, stream, Copy{}, y.data + t * y.ld, table.data + ids[t] * table.ld);
  if (stream) hwy::FlushStream();
}

}  // namespace
}  // namespace assay::cpu::of_embedding::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_embedding {
namespace {

HWY_EXPORT(gather);

using ops::EmbeddingArgs;

/// The naive kernel in SIMD, a row at a time.
void highway(const EmbeddingArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(gather)
  (args.t, args.h, args.ids.data(), Rows<const float>{args.table.data(), rows_of(args.table).ld}, rows_of(args.y));
}

const KernelRegistration highway_kernel{{.id = "embedding/cpu/highway",
                                         .summary = "SIMD, a row at a time",
                                         .run = &run_typed<EmbeddingArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_embedding
#endif
