// New rows of a cache of keys or values on the CPU: whole stretches of memory at a time.
#include "ops/cache_append.hpp"

#include <algorithm>

#include "core/half.hpp"
#include "kernels/heads.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::CacheAppendArgs;

/// The naive kernel by stretches: a head, all heads of a row where they follow each other, or all rows of a sequence
/// where those do too.
template <class S>
void stretches(const CacheAppendArgs& args, Device&) {
  const auto x = head_rows<const S>(args.x);
  const auto cache = head_rows<S>(args.cache);
  Index rows = args.rows, heads = args.kv_heads, stretch = args.d;
  if (heads == 1 || (x.per_head == stretch && cache.per_head == stretch)) stretch *= heads, heads = 1;
  if (heads == 1 && (rows == 1 || (x.per_position == stretch && cache.per_position == stretch)))
    stretch *= rows, rows = std::min<Index>(rows, 1);
  for (Index b = 0; b < args.batch; ++b)
    for (Index i = 0; i < rows; ++i)
      for (Index g = 0; g < heads; ++g) std::copy_n(x.at(b, i, g), stretch, cache.at(b, args.lengths(b) + i, g));
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = dtype_of<S>,
                             .summary = "one copy of memory for all that is dense",
                             .run = &run_typed<CacheAppendArgs, &stretches<S>>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add<float>("cache_append/cpu/stretches"),
    add<Half>("cache_append/cpu/stretches_f16"),
    add<BFloat16>("cache_append/cpu/stretches_bf16"),
};

}  // namespace
}  // namespace assay::cpu
