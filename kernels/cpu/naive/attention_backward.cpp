// Gradients of attention on the CPU, in plain loops.
#include "ops/attention_backward.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/heads.hpp"
#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_attention_backward {
namespace {

using ops::AttentionBackwardArgs;

/// With p = exp(scale q · k - logsumexp), ds = p (dy · v - dy · y) for visible pairs: dq = scale sum_j ds k, dk = scale
/// sum ds q, dv = sum p dy, the last two over the heads of a group and the queries. Shapes as in attention/cpu;
/// gradients are overwritten. A row with logsumexp = -inf contributes nothing. Cost 10 batch heads s t d operations.
template <class S>
void naive(const AttentionBackwardArgs& args, Device&) {
  const View<const S> q = args.q.as<const S>(), k = args.k.as<const S>(), v = args.v.as<const S>();
  const View<const S> y = args.y.as<const S>(), dy = args.dy.as<const S>();
  const View<S> dq = args.dq.as<S>(), dk = args.dk.as<S>(), dv = args.dv.as<S>();
  const Index group = args.heads / args.kv_heads, d = args.d;
  const auto scale = static_cast<float>(args.scale);
  std::vector<float> of_keys(static_cast<std::size_t>(args.t * d)), of_values = of_keys,
                                                                    of_query(static_cast<std::size_t>(d));
  for (Index b = 0; b < args.batch; ++b)
    for (Index g = 0; g < args.kv_heads; ++g) {
      std::fill(of_keys.begin(), of_keys.end(), 0.0F);
      std::fill(of_values.begin(), of_values.end(), 0.0F);
      for (Index h = g * group; h < (g + 1) * group; ++h)
        for (Index i = 0; i < args.s; ++i) {
          std::fill(of_query.begin(), of_query.end(), 0.0F);
          float along = 0.0F;
          for (Index c = 0; c < d; ++c) along += widen(dy(b, i, h, c)) * widen(y(b, i, h, c));
          const float logsumexp = args.logsumexp(b, h, i);
          const Index keys =
              logsumexp == -INFINITY ? 0 : keys_seen(args.causal != 0, args.lengths(b), args.starts(b), i);
          for (Index j = 0; j < keys; ++j) {
            float score = 0.0F, dp = 0.0F;
            for (Index c = 0; c < d; ++c) {
              score += widen(q(b, i, h, c)) * widen(k(b, j, g, c));
              dp += widen(dy(b, i, h, c)) * widen(v(b, j, g, c));
            }
            const float p = std::exp(scale * score - logsumexp), ds = p * (dp - along);
            for (Index c = 0; c < d; ++c) {
              of_query[static_cast<std::size_t>(c)] += ds * widen(k(b, j, g, c));
              of_keys[static_cast<std::size_t>(j * d + c)] += ds * widen(q(b, i, h, c));
              of_values[static_cast<std::size_t>(j * d + c)] += p * widen(dy(b, i, h, c));
            }
          }
          for (Index c = 0; c < d; ++c) dq(b, i, h, c) = narrow<S>(scale * of_query[static_cast<std::size_t>(c)]);
        }
      for (Index j = 0; j < args.t; ++j)
        for (Index c = 0; c < d; ++c) {
          dk(b, j, g, c) = narrow<S>(scale * of_keys[static_cast<std::size_t>(j * d + c)]);
          dv(b, j, g, c) = narrow<S>(of_values[static_cast<std::size_t>(j * d + c)]);
        }
    }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "a pair of query and key at a time",
                             .run = &run_typed<AttentionBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "attention_backward/cpu/naive"),
                                            add<Half>(DType::f16, "attention_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "attention_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_attention_backward
