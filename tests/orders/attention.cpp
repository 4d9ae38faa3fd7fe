// Attention: one loop, parameterized by the choices in which projects differ.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/attention.hpp"
#include "ops/attention_backward.hpp"
#include "ops/attention_decode.hpp"
#include "tests/orders/orders.hpp"

namespace assay::orders_test {
namespace {

enum class Merge { none, by_sums, by_logsumexp, by_state };

struct Choices {
  Index tile = 0;              ///< keys between two rescalings; 0: the maximum is computed first
  bool base2 = false;          ///< 2^(s c - m c) with the scale in c, fused
  int lazy = 0;                ///< rescales only beyond 2^lazy
  bool divides_first = false;  ///< divides each weight by the sum
  bool reciprocal = false;     ///< multiplies by 1 / sum
  bool scales_query = false;   ///< scales the query before the dot product
  bool scales_both = false;    ///< scales both factors by the root of the scale
  Index part = 0;              ///< keys per part; normalized means of parts are merged
  Merge merge = Merge::none;
};

constexpr float kLog2e = 1.44269504088896340736F;

/// A mean under weights relative to `shift`, and the sum of the weights.
struct State {
  float shift = -INFINITY, sum = 0;
  std::vector<float> mean;

  float logsumexp() const { return sum == 0 ? -INFINITY : shift + std::log(sum); }
};

/// Attends with one query to the keys from .. to.
template <class Score, class Value>
State attend(Index from, Index to, Index d, float scale, const Choices& by, Score score, Value value) {
  State s;
  s.mean.assign(static_cast<std::size_t>(d), 0);
  const float constant = by.base2 ? scale * kLog2e : 1;
  const auto power = [&](float x, float shift) {
    return by.base2 ? std::exp2(std::fma(x, constant, -(shift * constant))) : std::exp(x - shift);
  };
  std::vector<float> scores, weights;
  const Index tile = by.tile > 0 ? by.tile : std::max<Index>(to - from, 1);
  for (Index first = from; first < to; first += tile) {
    scores.clear(), weights.clear();
    float largest = s.shift;
    for (Index j = first; j < std::min(to, first + tile); ++j)
      scores.push_back(score(j)), largest = std::max(largest, scores.back());
    for (const float x : scores)
      if (std::isnan(x)) largest = x;
    if (largest == -INFINITY) continue;
    const float grown = (largest - s.shift) * (by.base2 ? constant : kLog2e);
    if (by.lazy == 0 || !(grown <= static_cast<float>(by.lazy))) {
      const float factor = s.shift == -INFINITY ? 0
                           : by.base2           ? std::exp2((s.shift - largest) * constant)
                                                : std::exp(s.shift - largest);
      s.sum *= factor;
      for (float& x : s.mean) x = s.shift == -INFINITY ? 0 : x * factor;
      s.shift = largest;
    }
    for (const float x : scores) weights.push_back(power(x, s.shift)), s.sum += weights.back();
    if (by.divides_first && s.sum != 0)
      for (float& w : weights) w = by.reciprocal ? w * (1 / s.sum) : w / s.sum;
    for (std::size_t i = 0; i < weights.size(); ++i)
      for (Index c = 0; c < d; ++c)
        s.mean[static_cast<std::size_t>(c)] += weights[i] * value(first + static_cast<Index>(i), c);
  }
  const float inverse = 1 / s.sum;
  if (!by.divides_first)
    for (float& x : s.mean) x = s.sum == 0 ? 0 : by.reciprocal ? x * inverse : x / s.sum;
  if (by.base2) s.shift *= scale;
  return s;
}

State merged(const std::vector<State>& parts, Index d, Merge merge) {
  State all;
  all.mean.assign(static_cast<std::size_t>(d), 0);
  if (merge == Merge::by_state) {  // sequential
    float l = -INFINITY;
    for (const State& p : parts) {
      const float other = p.logsumexp(), larger = std::isnan(other) || std::isnan(l) ? NAN : std::max(l, other);
      if (larger == -INFINITY) continue;
      const float a = std::exp(l - larger), b = std::exp(other - larger), of_a = a / (a + b), of_b = b / (a + b);
      for (std::size_t c = 0; c < all.mean.size(); ++c)
        all.mean[c] = of_a == 0 ? p.mean[c] * of_b : all.mean[c] * of_a + p.mean[c] * of_b;
      l = larger + std::log(a + b);
    }
    all.shift = l, all.sum = l == -INFINITY ? 0 : 1;
    return all;
  }
  for (const State& p : parts) all.shift = std::max(all.shift, p.shift);
  for (const State& p : parts)
    if (std::isnan(p.shift) || std::isnan(p.sum)) all.shift = NAN;
  if (all.shift == -INFINITY) return all;
  if (merge == Merge::by_sums) {
    for (const State& p : parts) all.sum += p.sum * std::exp(p.shift - all.shift);
    const float inverse = 1 / all.sum;
    for (const State& p : parts) {
      const float weight = p.sum * std::exp(p.shift - all.shift) * inverse;
      for (std::size_t c = 0; c < all.mean.size(); ++c) all.mean[c] += p.sum == 0 ? 0 : weight * p.mean[c];
    }
    return all;
  }
  float largest = -INFINITY, sum = 0;
  for (const State& p : parts) largest = std::max(largest, p.logsumexp());
  for (const State& p : parts)
    if (std::isnan(p.logsumexp())) largest = NAN;
  for (const State& p : parts) sum += std::exp(p.logsumexp() - largest);
  const float l = std::log(sum) + largest;
  for (const State& p : parts) {
    const float weight = std::exp(p.logsumexp() - l);
    for (std::size_t c = 0; c < all.mean.size(); ++c) all.mean[c] += p.sum == 0 ? 0 : weight * p.mean[c];
  }
  all.shift = l, all.sum = 1;
  return all;
}

template <class Query, class Key, class Value>
State of_query(Index keys, Index d, double given, const Choices& by, Query q, Key k, Value v) {
  const auto scale = static_cast<float>(given);
  const auto root = static_cast<float>(std::sqrt(given));
  const auto score = [&](Index j) {
    float sum = 0;
    for (Index c = 0; c < d; ++c) {
      if (by.scales_both) sum += (q(c) * root) * (k(j, c) * root);
      else if (by.scales_query) sum += (q(c) * scale) * k(j, c);
      else sum += q(c) * k(j, c);
    }
    return by.scales_both || by.scales_query || by.base2 ? sum : sum * scale;
  };
  if (by.part == 0) return attend(0, keys, d, scale, by, score, v);
  std::vector<State> parts;
  for (Index first = 0; first < keys; first += by.part)
    parts.push_back(attend(first, std::min(keys, first + by.part), d, scale, by, score, v));
  return merged(parts, d, by.merge);
}

void attention(const ops::AttentionArgs& args, const Choices& by) {
  const Index group = args.heads / args.kv_heads;
  for (Index b = 0; b < args.batch; ++b)
    for (Index h = 0; h < args.heads; ++h)
      for (Index i = 0; i < args.s; ++i) {
        const Index length = args.lengths(b),
                    keys = args.causal != 0 ? std::clamp<Index>(args.starts(b) + i + 1, 0, length) : length;
        const auto q = args.q.as<const float>(), k = args.k.as<const float>(), v = args.v.as<const float>();
        const State s = of_query(
            keys, args.d, args.scale, by, [&](Index c) { return q(b, i, h, c); },
            [&](Index j, Index c) { return k(b, j, h / group, c); },
            [&](Index j, Index c) { return v(b, j, h / group, c); });
        for (Index c = 0; c < args.d; ++c) args.y.as<float>()(b, i, h, c) = s.mean[static_cast<std::size_t>(c)];
        args.logsumexp(b, h, i) = s.logsumexp();
      }
}

void decode(const ops::AttentionDecodeArgs& args, const Choices& by) {
  const Index group = args.heads / args.kv_heads;
  const auto q = args.q.as<const float>(), k = args.k.as<const float>(), v = args.v.as<const float>();
  const auto keys = args.k_cache.as<float>(), values = args.v_cache.as<float>();
  for (Index b = 0; b < args.batch; ++b) {
    const Index last = args.lengths(b);
    for (Index g = 0; g < args.kv_heads; ++g)
      for (Index c = 0; c < args.d; ++c) keys(b, last, g, c) = k(b, g, c), values(b, last, g, c) = v(b, g, c);
    for (Index h = 0; h < args.heads; ++h) {
      const State s = of_query(
          last + 1, args.d, args.scale, by, [&](Index c) { return q(b, h, c); },
          [&](Index j, Index c) { return keys(b, j, h / group, c); },
          [&](Index j, Index c) { return values(b, j, h / group, c); });
      for (Index c = 0; c < args.d; ++c) args.y.as<float>()(b, h, c) = s.mean[static_cast<std::size_t>(c)];
    }
  }
}

/// Gradients from the saved logsumexp: in base 2 with the scale last, or with its root on q and k.
template <bool base2>
void backward(const ops::AttentionBackwardArgs& args) {
  const Index group = args.heads / args.kv_heads;
  const auto q = args.q.as<const float>(), k = args.k.as<const float>(), v = args.v.as<const float>(),
             y = args.y.as<const float>(), dy = args.dy.as<const float>();
  const auto dq = args.dq.as<float>(), dk = args.dk.as<float>(), dv = args.dv.as<float>();
  const auto scale = static_cast<float>(args.scale), root = static_cast<float>(std::sqrt(args.scale));
  for (const auto& [gradient, length] : {std::pair{dk, args.t}, std::pair{dv, args.t}, std::pair{dq, args.s}})
    for (Index b = 0; b < args.batch; ++b)
      for (Index i = 0; i < length; ++i)
        for (Index h = 0; h < gradient.dim(2); ++h)
          for (Index c = 0; c < args.d; ++c) gradient(b, i, h, c) = 0;
  for (Index b = 0; b < args.batch; ++b)
    for (Index h = 0; h < args.heads; ++h)
      for (Index i = 0; i < args.s; ++i) {
        const Index length = args.lengths(b),
                    seen = args.causal != 0 ? std::clamp<Index>(args.starts(b) + i + 1, 0, length) : length,
                    g = h / group;
        const float l = args.logsumexp(b, h, i);
        if (l == -INFINITY) continue;
        float along = 0;
        for (Index c = 0; c < args.d; ++c) along += dy(b, i, h, c) * y(b, i, h, c);
        for (Index j = 0; j < seen; ++j) {
          float score = 0, of_value = 0;
          for (Index c = 0; c < args.d; ++c) {
            score += base2 ? q(b, i, h, c) * k(b, j, g, c) : (q(b, i, h, c) * root) * (k(b, j, g, c) * root);
            of_value += dy(b, i, h, c) * v(b, j, g, c);
          }
          const float p = base2 ? std::exp2(std::fma(score, scale * kLog2e, -(l * kLog2e))) : std::exp(score - l),
                      ds = p * (of_value - along);
          for (Index c = 0; c < args.d; ++c) {
            dv(b, j, g, c) += p * dy(b, i, h, c);
            dk(b, j, g, c) += base2 ? ds * q(b, i, h, c) : ds * (q(b, i, h, c) * root);
            dq(b, i, h, c) += base2 ? ds * k(b, j, g, c) : ds * (k(b, j, g, c) * root);
          }
        }
      }
  for (const auto& [gradient, length] : {std::pair{dk, args.t}, std::pair{dq, args.s}})
    for (Index b = 0; b < args.batch; ++b)
      for (Index i = 0; i < length; ++i)
        for (Index h = 0; h < gradient.dim(2); ++h)
          for (Index c = 0; c < args.d; ++c) gradient(b, i, h, c) *= base2 ? scale : root;
}

struct Row {
  std::string_view project, place, words;
  Choices by;
  Arithmetic arithmetic;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows{
      {"PyTorch",
       "aten/src/ATen/native/transformers/attention.cpp, _scaled_dot_product_attention_math",
       "root of the scale on q and k, softmax, then v",
       {.divides_first = true, .scales_both = true},
       {}},
      {"llama.cpp",
       "src/llama-graph.cpp, build_attn_mha without flash attention",
       "scores scaled in the softmax, weights divided, then v",
       {.divides_first = true, .reciprocal = true},
       {}},
      {"ggml",
       "ggml/src/ggml-cpu/ops.cpp, ggml_compute_forward_flash_attn_ext",
       "online by single keys, sum divided at the end",
       {.tile = 1, .reciprocal = true},
       {.online_tile = 1}},
      {"FlashAttention",
       "csrc/flash_attn/src/softmax.h, scale_apply_exp2",
       "2^(s c - m c) fused, tiles of 64, 1 / sum at the end",
       {.tile = 64, .base2 = true, .reciprocal = true},
       {.online_tile = 64}},
      {"FlashAttention",
       "flash_attn/cute/softmax.py, SoftmaxSm100, rescale_threshold",
       "rescaled only where the maximum grows by more than 2^8",
       {.tile = 16, .base2 = true, .lazy = 8, .reciprocal = true},
       {.online_tile = 16, .lazy_rescaling = 8}},
      {"FlashAttention",
       "csrc/flash_attn/src/flash_fwd_kernel.h, combine_attn_seqk_parallel",
       "parts of 16, each normalized, merged by logsumexp",
       {.base2 = true, .reciprocal = true, .part = 16, .merge = Merge::by_logsumexp},
       {.online_tile = 16, .merges_parts = true}},
      {"FlashInfer",
       "include/flashinfer/attention/state.cuh, state_t::merge",
       "parts of 64 with their own state, merged one after another",
       {.tile = 16, .base2 = true, .part = 64, .merge = Merge::by_state},
       {.online_tile = 16, .merges_parts = true}},
      {"vLLM",
       "csrc/attention/attention_kernels.cuh, paged_attention_v1",
       "query scaled after the sum, weights times 1 / sum, then v",
       {.divides_first = true, .reciprocal = true},
       {}},
      {"vLLM",
       "csrc/attention/attention_kernels.cuh, paged_attention_v2_reduce_kernel",
       "parts of 16 divided by their sums, merged by sums",
       {.divides_first = true, .reciprocal = true, .part = 16, .merge = Merge::by_sums},
       {.online_tile = 16, .merges_parts = true}},
      {"Triton",
       "python/tutorials/06-fused-attention.py, _attn_fwd",
       "query scaled first, online tiles of 32, divided at the end",
       {.tile = 32, .scales_query = true},
       {.online_tile = 32}},
  };
  return kRows;
}

}  // namespace

Orders attention_orders() {
  Orders orders;
  for (const Row& row : rows())
    orders.push_back(order<ops::AttentionArgs>(
        "attention", row.project, row.place, row.words,
        [by = row.by](const ops::AttentionArgs& args) { attention(args, by); }, row.arithmetic));
  orders.push_back(order<ops::AttentionBackwardArgs>(
      "attention_backward", "FlashAttention", "csrc/flash_attn/src/flash_bwd_kernel.h, compute_dq_dk_dv_1colblock",
      "weights in base 2, gradients scaled at the end", backward<true>));
  orders.push_back(order<ops::AttentionBackwardArgs>("attention_backward", "PyTorch",
                                                     "gradients of _scaled_dot_product_attention_math",
                                                     "the root of the scale on q and k", backward<false>));
  return orders;
}

Orders decode_orders() {
  Orders orders;
  for (const Row& row : rows())
    orders.push_back(order<ops::AttentionDecodeArgs>(
        "attention_decode", row.project, row.place, row.words,
        [by = row.by](const ops::AttentionDecodeArgs& args) { decode(args, by); }, row.arithmetic));
  return orders;
}

}  // namespace assay::orders_test
