// Attention on the CPU, in plain loops.
#include "ops/attention.hpp"

#include <cmath>
#include <vector>

#include "kernels/heads.hpp"
#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_attention {
namespace {

using ops::AttentionArgs;

/// y[b,i,h] = sum_j p_j v[b,j,g], p = softmax(scale q · k), over visible keys; also writes logsumexp[b,h,i]
///   q, y (batch,s,heads,d), k, v (batch,t,kv_heads,d): float32, binary16 or bfloat16; lengths, starts (batch): int32;
///   logsumexp (batch,heads,s): float32. Rows dense, outputs share no memory with inputs. The maximum is found before
///   the first exponential. Cost 4 batch heads s t d operations, t floats of scratch memory.
template <class S>
void naive(const AttentionArgs& args, Device&) {
  const View<const S> q = args.q.as<const S>(), k = args.k.as<const S>(), v = args.v.as<const S>();
  const View<S> y = args.y.as<S>();
  const Index group = args.heads / args.kv_heads;
  std::vector<float> weights(static_cast<std::size_t>(args.t));
  float* const weight = weights.data();
  for (Index b = 0; b < args.batch; ++b)
    for (Index h = 0; h < args.heads; ++h)
      for (Index i = 0; i < args.s; ++i) {
        const Index keys = keys_seen(args.causal != 0, args.lengths(b), args.starts(b), i);
        float largest = -INFINITY, sum = 0.0F;
        for (Index j = 0; j < keys; ++j) {
          float dot = 0.0F;
          for (Index c = 0; c < args.d; ++c) dot += widen(q(b, i, h, c)) * widen(k(b, j, h / group, c));
          weight[j] = static_cast<float>(args.scale) * dot;
          largest = largest < weight[j] ? weight[j] : largest;
        }
        const float shift = largest == -INFINITY ? 0.0F : largest;
        for (Index j = 0; j < keys; ++j) sum += weight[j] = std::exp(weight[j] - shift);
        for (Index c = 0; c < args.d; ++c) {
          float mean = 0.0F;
          for (Index j = 0; j < keys; ++j) mean += weight[j] * widen(v(b, j, h / group, c));
          y(b, i, h, c) = narrow<S>(sum == 0.0F ? 0.0F : mean / sum);
        }
        args.logsumexp(b, h, i) = sum == 0.0F ? -INFINITY : shift + std::log(sum);
      }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "a query at a time, all of its scores in memory",
                             .run = &run_typed<AttentionArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "attention/cpu/naive"),
                                            add<Half>(DType::f16, "attention/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "attention/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_attention
