// y[t] = table[ids[t]] on the CPU.
#include "ops/embedding.hpp"

#include <cstring>

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

void gather(const ops::EmbeddingArgs& args) {
  const Rows<const float> table = rows_of<const float>(args.table);
  const Rows<float> y = rows_of<float>(args.y);
  const bool stream = args.t * args.h >= kStreamedElements;
  for (Index t = 0; t < args.t; ++t)
    map_row(args.h, stream, Copy{}, y.data + t * y.ld, table.data + args.ids(t) * table.ld);
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

/// The naive kernel a row at a time: in SIMD, 16-bit elements by memcpy.
void highway(const EmbeddingArgs& args, Device&) {
  if (args.y.dtype() == DType::f32) return HWY_DYNAMIC_DISPATCH(gather)(args);
  const Rows<const std::uint16_t> table = rows_of<const std::uint16_t>(args.table);
  const Rows<std::uint16_t> y = rows_of<std::uint16_t>(args.y);
  for (Index t = 0; t < args.t && args.h > 0; ++t)
    std::memcpy(y.data + t * y.ld, table.data + args.ids(t) * table.ld, static_cast<std::size_t>(args.h) * 2);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "SIMD, a row at a time",
                             .run = &run_typed<EmbeddingArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "embedding/cpu/highway"),
    add(DType::f16, "embedding/cpu/highway_f16"),
    add(DType::bf16, "embedding/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_embedding
#endif
