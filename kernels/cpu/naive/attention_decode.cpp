// Attention of one position against a cache on the CPU, in plain loops.
#include "ops/attention_decode.hpp"

#include <cmath>
#include <vector>

#include "kernels/heads.hpp"
#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_attention_decode {
namespace {

using ops::AttentionDecodeArgs;

/// Appends k and v at place lengths[b] of the caches, then y[b,h] = sum_j p_j v_cache[b,j,g], p = softmax(scale q ·
/// k_cache) over the places j <= lengths[b]
///   q, y (batch,heads,d), k, v (batch,kv_heads,d), caches (batch,capacity,kv_heads,d): float32, binary16 or bfloat16;
///   lengths (batch): int32. Rows dense, outputs share no memory with inputs. The maximum is found before the first
///   exponential. Cost 4 heads d operations a place, a float of scratch memory for each.
template <class S>
void naive(const AttentionDecodeArgs& args, Device&) {
  const View<const S> q = args.q.as<const S>(), k = args.k.as<const S>(), v = args.v.as<const S>();
  const View<S> k_cache = args.k_cache.as<S>(), v_cache = args.v_cache.as<S>(), y = args.y.as<S>();
  const Index group = args.heads / args.kv_heads;
  std::vector<float> weights(static_cast<std::size_t>(args.capacity));
  float* const weight = weights.data();
  for (Index b = 0; b < args.batch; ++b) {
    const Index last = args.lengths(b);
    for (Index g = 0; g < args.kv_heads; ++g)
      for (Index c = 0; c < args.d; ++c) {
        k_cache(b, last, g, c) = k(b, g, c);
        v_cache(b, last, g, c) = v(b, g, c);
      }
    for (Index h = 0; h < args.heads; ++h) {
      float largest = -INFINITY, sum = 0.0F;
      for (Index j = 0; j <= last; ++j) {
        float dot = 0.0F;
        for (Index c = 0; c < args.d; ++c) dot += widen(q(b, h, c)) * widen(k_cache(b, j, h / group, c));
        weight[j] = static_cast<float>(args.scale) * dot;
        largest = largest < weight[j] ? weight[j] : largest;
      }
      const float shift = largest == -INFINITY ? 0.0F : largest;
      for (Index j = 0; j <= last; ++j) sum += weight[j] = std::exp(weight[j] - shift);
      for (Index c = 0; c < args.d; ++c) {
        float mean = 0.0F;
        for (Index j = 0; j <= last; ++j) mean += weight[j] * widen(v_cache(b, j, h / group, c));
        y(b, h, c) = narrow<S>(sum == 0.0F ? 0.0F : mean / sum);
      }
    }
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "a head at a time, all of its scores in memory",
                             .run = &run_typed<AttentionDecodeArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "attention_decode/cpu/naive"),
                                            add<Half>(DType::f16, "attention_decode/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "attention_decode/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_attention_decode
