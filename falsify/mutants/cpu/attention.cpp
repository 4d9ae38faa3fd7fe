// Wrong attentions and gradients.
#include "ops/attention.hpp"

#include <cmath>
#include <vector>

#include "falsify/mutants/cpu/mutant.hpp"
#include "kernels/heads.hpp"
#include "ops/attention_backward.hpp"

namespace assay::mutants::attention_mutants {
namespace {

enum class Fault {
  future_seen, past_only, lengths_ignored, starts_ignored, heads_by_modulo, first_key_value_head, scale_root, scale_missing, last_key_dropped,
  not_shifted, masked_row_mean, masked_key_nan, logsumexp_base_2, logsumexp_without_maximum, values_transposed, weights_in_bf16,
  sum_not_rescaled, keys_not_transposed, padding_in_sum
};

float to_bf16(float x) { return widen(to_bfloat16(x)); }

template <Fault F>
void forward(const ops::AttentionArgs& args, Device&) {
  const View<const float> q = args.q.as<const float>(), k = args.k.as<const float>(), v = args.v.as<const float>();
  const View<float> y = args.y.as<float>();
  const Index group = args.heads / args.kv_heads;
  std::vector<float> weights(static_cast<std::size_t>(args.t));
  float* const weight = weights.data();
  for (Index b = 0; b < args.batch; ++b)
    for (Index h = 0; h < args.heads; ++h)
      for (Index i = 0; i < args.s; ++i) {
        const Index length = F == Fault::lengths_ignored ? args.t : args.lengths(b);
        const Index start = F == Fault::starts_ignored ? 0 : args.starts(b);
        const Index seen = keys_seen(args.causal != 0, length, start, F == Fault::future_seen ? i + 1 : F == Fault::past_only ? i - 1 : i);
        const Index keys = F == Fault::last_key_dropped && seen > 1 ? seen - 1 : seen;
        const Index g = F == Fault::heads_by_modulo ? h % args.kv_heads : F == Fault::first_key_value_head ? 0 : h / group;
        const auto given = static_cast<float>(args.scale);
        const float scale = F == Fault::scale_missing ? 1 : F == Fault::scale_root ? given * std::sqrt(given) : given;
        float largest = -INFINITY, sum = 0;
        const auto score_of = [&](Index j) {
          float dot = 0;
          for (Index c = 0; c < args.d; ++c) dot += q(b, i, h, c) * k(b, j, g, F == Fault::keys_not_transposed ? args.d - 1 - c : c);
          return scale * dot;
        };
        for (Index j = 0; j < keys; ++j) {
          weight[j] = score_of(j);
          const float grown = largest < weight[j] ? weight[j] : largest;
          // Blocks of eight keys, whose running sum keeps its old shift.
          if (F == Fault::sum_not_rescaled && j % 8 == 0) largest = grown;
          if (F != Fault::sum_not_rescaled) largest = grown;
        }
        float shift = largest == -INFINITY ? 0 : largest;
        if (F == Fault::not_shifted) shift = 0;
        for (Index j = 0; j < keys; ++j) {
          weight[j] = std::exp(weight[j] - shift);
          if (F == Fault::sum_not_rescaled) weight[j] = weight[j] > 1 ? 1 : weight[j];
          sum += weight[j];
          if (F == Fault::weights_in_bf16) weight[j] = to_bf16(weight[j]);
        }
        if (F == Fault::padding_in_sum && args.t > keys) sum += std::exp(-1e4F - shift) + (keys == 0 ? 1 : 0);
        for (Index c = 0; c < args.d; ++c) {
          float mean = 0;
          for (Index j = 0; j < keys; ++j) mean += weight[j] * v(b, j, g, F == Fault::values_transposed ? args.d - 1 - c : c);
          if (F == Fault::masked_key_nan)
            for (Index j = keys; j < args.t; ++j) mean += 0.0F * v(b, j, g, c);
          const bool nothing = sum == 0;
          y(b, i, h, c) = nothing ? (F == Fault::masked_row_mean && args.t > 0 ? v(b, 0, g, c) : 0) : mean / sum;
        }
        const float logarithm = F == Fault::logsumexp_base_2 ? std::log2(sum) : std::log(sum);
        args.logsumexp(b, h, i) = sum == 0 ? -INFINITY : (F == Fault::logsumexp_without_maximum ? 0 : shift) + logarithm;
      }
}

enum class Gradient {
  along_dropped, scale_in_query_missing, scale_in_key_missing, scale_twice, keys_untouched, values_from_ds, first_head_only, last_head_only, future_seen,
  own_softmax, upstream_copied, accumulates, lengths_ignored, key_for_query, masked_row_counted
};

template <Gradient F>
void backward(const ops::AttentionBackwardArgs& args, Device&) {
  const View<const float> q = args.q.as<const float>(), k = args.k.as<const float>(), v = args.v.as<const float>();
  const View<const float> y = args.y.as<const float>(), dy = args.dy.as<const float>();
  const View<float> dq = args.dq.as<float>(), dk = args.dk.as<float>(), dv = args.dv.as<float>();
  const Index group = args.heads / args.kv_heads, d = args.d;
  const auto scale = static_cast<float>(args.scale);
  std::vector<float> of_keys(static_cast<std::size_t>(args.t * d)), of_values = of_keys;
  for (Index b = 0; b < args.batch; ++b)
    for (Index g = 0; g < args.kv_heads; ++g) {
      std::fill(of_keys.begin(), of_keys.end(), 0.0F);
      std::fill(of_values.begin(), of_values.end(), 0.0F);
      for (Index h = g * group; h < (g + 1) * group; ++h) {
        const bool reaches = (F != Gradient::first_head_only || h == g * group) && (F != Gradient::last_head_only || h + 1 == (g + 1) * group);
        for (Index i = 0; i < args.s; ++i) {
          std::vector<float> of_query(static_cast<std::size_t>(d));
          float along = 0, sum = 0;
          for (Index c = 0; c < d; ++c) along += dy(b, i, h, c) * y(b, i, h, c);
          if (F == Gradient::along_dropped) along = 0;
          const float logsumexp = args.logsumexp(b, h, i);
          const Index length = F == Gradient::lengths_ignored ? args.t : args.lengths(b);
          Index keys = keys_seen(args.causal != 0, length, args.starts(b), F == Gradient::future_seen ? i + 1 : i);
          if (logsumexp == -INFINITY && F != Gradient::masked_row_counted) keys = 0;
          const auto score = [&](Index j) {
            float dot = 0;
            for (Index c = 0; c < d; ++c) dot += q(b, i, h, c) * k(b, j, g, c);
            return scale * dot;
          };
          if (F == Gradient::own_softmax)  // without the maximum taken off
            for (Index j = 0; j < keys; ++j) sum += std::exp(score(j));
          for (Index j = 0; j < keys; ++j) {
            float dp = 0;
            for (Index c = 0; c < d; ++c) dp += dy(b, i, h, c) * v(b, j, g, c);
            const float p = F == Gradient::own_softmax ? std::exp(score(j)) / sum : std::exp(score(j) - logsumexp);
            const float ds = p * (dp - along);
            for (Index c = 0; c < d; ++c) {
              of_query[static_cast<std::size_t>(c)] += ds * (F == Gradient::key_for_query ? v(b, j, g, c) : k(b, j, g, c));
              if (!reaches) continue;
              of_keys[static_cast<std::size_t>(j * d + c)] += ds * q(b, i, h, c);
              of_values[static_cast<std::size_t>(j * d + c)] += (F == Gradient::values_from_ds ? ds : p) * dy(b, i, h, c);
            }
          }
          const float factor = F == Gradient::scale_in_query_missing ? 1 : F == Gradient::scale_twice ? scale * scale : scale;
          for (Index c = 0; c < d; ++c)
            dq(b, i, h, c) = F == Gradient::upstream_copied ? dy(b, i, h, c)
                                                            : (F == Gradient::accumulates ? dq(b, i, h, c) : 0) + factor * of_query[static_cast<std::size_t>(c)];
        }
      }
      for (Index j = 0; j < args.t && F != Gradient::keys_untouched; ++j)
        for (Index c = 0; c < d; ++c) {
          dk(b, j, g, c) = (F == Gradient::scale_in_key_missing ? 1 : scale) * of_keys[static_cast<std::size_t>(j * d + c)];
          dv(b, j, g, c) = of_values[static_cast<std::size_t>(j * d + c)];
        }
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::AttentionArgs, &forward<F>>("attention", id, fault);
}
template <Gradient F>
KernelRegistration add_gradient(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::AttentionBackwardArgs, &backward<F>>("attention_backward", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::future_seen>("mutant/cpu/attention/future_seen", "a query sees the key after its own (bug 38)"),
    add<Fault::past_only>("mutant/cpu/attention/past_only", "a query does not see its own key"),
    add<Fault::lengths_ignored>("mutant/cpu/attention/lengths_ignored", "keys past the sequence's length count"),
    add<Fault::starts_ignored>("mutant/cpu/attention/starts_ignored", "positions count from 0 whatever starts says (bug 30)"),
    add<Fault::heads_by_modulo>("mutant/cpu/attention/heads_by_modulo", "head h reads key-value head h % kv_heads (bug 15)"),
    add<Fault::first_key_value_head>("mutant/cpu/attention/first_key_value_head", "every head reads the first key-value head (bug 31)"),
    add<Fault::scale_root>("mutant/cpu/attention/scale_root", "scores are scaled by the scale's power 3/2"),
    add<Fault::scale_missing>("mutant/cpu/attention/scale_missing", "scores are not scaled"),
    add<Fault::last_key_dropped>("mutant/cpu/attention/last_key_dropped", "the last visible key is left out"),
    add<Fault::not_shifted>("mutant/cpu/attention/not_shifted", "the maximum is not taken off"),
    add<Fault::masked_row_mean>("mutant/cpu/attention/masked_row_mean", "a row that sees nothing takes the first value (bug 40)"),
    add<Fault::masked_key_nan>("mutant/cpu/attention/masked_key_nan", "unseen values are multiplied by zero (bug 40)"),
    add<Fault::logsumexp_base_2>("mutant/cpu/attention/logsumexp_base_2", "logsumexp with a logarithm to base 2"),
    add<Fault::logsumexp_without_maximum>("mutant/cpu/attention/logsumexp_without_maximum", "logsumexp lacks the maximum"),
    add<Fault::values_transposed>("mutant/cpu/attention/values_transposed", "values are read from the end of the head"),
    add<Fault::weights_in_bf16>("mutant/cpu/attention/weights_in_bf16", "weights are rounded to bf16 under a contract of f32"),
    add<Fault::sum_not_rescaled>("mutant/cpu/attention/sum_not_rescaled", "a maximum inside a block is missed, and weights are cut at 1"),
    add<Fault::keys_not_transposed>("mutant/cpu/attention/keys_not_transposed", "keys are read from the end of the head"),
    add<Fault::padding_in_sum>("mutant/cpu/attention/padding_in_sum", "padding at a score of -1e4 counts in the sum"),
    add_gradient<Gradient::along_dropped>("mutant/cpu/attention_backward/along_dropped", "ds without the row sum of dy y"),
    add_gradient<Gradient::scale_in_query_missing>("mutant/cpu/attention_backward/scale_in_query_missing", "dq is not scaled"),
    add_gradient<Gradient::scale_in_key_missing>("mutant/cpu/attention_backward/scale_in_key_missing", "dk is not scaled"),
    add_gradient<Gradient::scale_twice>("mutant/cpu/attention_backward/scale_twice", "dq is scaled twice"),
    add_gradient<Gradient::keys_untouched>("mutant/cpu/attention_backward/keys_untouched", "dk and dv are never written (bug 41)"),
    add_gradient<Gradient::values_from_ds>("mutant/cpu/attention_backward/values_from_ds", "dv of ds instead of p"),
    add_gradient<Gradient::first_head_only>("mutant/cpu/attention_backward/first_head_only", "one head of a group reaches dk and dv (bug 15)"),
    add_gradient<Gradient::last_head_only>("mutant/cpu/attention_backward/last_head_only", "each head of a group overwrites dk and dv"),
    add_gradient<Gradient::future_seen>("mutant/cpu/attention_backward/future_seen", "a query sees the key after its own (bug 38)"),
    add_gradient<Gradient::own_softmax>("mutant/cpu/attention_backward/own_softmax", "weights are computed again without a maximum"),
    add_gradient<Gradient::upstream_copied>("mutant/cpu/attention_backward/upstream_copied", "dq is the upstream gradient (bug 41)"),
    add_gradient<Gradient::accumulates>("mutant/cpu/attention_backward/accumulates", "dq is added to what was there"),
    add_gradient<Gradient::lengths_ignored>("mutant/cpu/attention_backward/lengths_ignored", "keys past the sequence's length count"),
    add_gradient<Gradient::key_for_query>("mutant/cpu/attention_backward/key_for_query", "dq of values instead of keys"),
    add_gradient<Gradient::masked_row_counted>("mutant/cpu/attention_backward/masked_row_counted", "a row whose logsumexp is -inf takes part (bug 40)"),
};

}  // namespace
}  // namespace assay::mutants::attention_mutants
