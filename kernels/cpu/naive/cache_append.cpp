// New rows of a cache of keys or values on the CPU, in plain loops.
#include "ops/cache_append.hpp"

#include "core/half.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_cache_append {
namespace {

using ops::CacheAppendArgs;

/// cache[b,lengths[b] + i,g,c] = x[b,i,g,c]
///   x (batch,rows,kv_heads,d), cache (batch,spare + rows,kv_heads,d): float32, binary16 or bfloat16, heads dense; lengths
///   (batch) from 0 to spare; no memory is shared.
/// Copies bits. Cost: the bytes of x, read and written.
template <class S>
void naive(const CacheAppendArgs& args, Device&) {
  const View<const S> x = args.x.as<const S>();
  const View<S> cache = args.cache.as<S>();
  for (Index b = 0; b < args.batch; ++b)
    for (Index i = 0; i < args.rows; ++i)
      for (Index g = 0; g < args.kv_heads; ++g)
        for (Index c = 0; c < args.d; ++c) cache(b, args.lengths(b) + i, g, c) = x(b, i, g, c);
}

template <class S>
KernelRegistration add(std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = dtype_of<S>, .summary = "four loops", .run = &run_typed<CacheAppendArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {
    add<float>("cache_append/cpu/naive"),
    add<Half>("cache_append/cpu/naive_f16"),
    add<BFloat16>("cache_append/cpu/naive_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_cache_append
