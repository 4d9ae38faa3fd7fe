// Blocks of transformers by their published equations, in plain loops over a number type: the mirror of
// program/model/transformer.cpp. Tensors are row-major.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "program/model/transformer.hpp"

namespace assay::falsify {

template <class T>
class Equations {
 public:
  using Tensor = std::vector<T>;
  /// Keys, rotated, and values of each layer, by its prefix.
  using Caches = std::map<std::string, std::pair<Tensor, Tensor>>;
  /// Results of steps, by the prefix of their layer and the name of the result.
  using Trace = std::map<std::string, Tensor>;

  /// Of one sequence: row i stands at positions[i], keys from `length` on are padding. `weights` by full name; those that
  /// are absent take no part. With caches, the rows follow the `held` ones that these hold, and are appended.
  Equations(const program::TransformerConfig& config, const std::map<std::string, Tensor>& weights,
            std::vector<double> positions, Index s, Index length, Caches* caches = nullptr, Index held = 0,
            Trace* trace = nullptr)
      : c_(config), weights_(weights), positions_(std::move(positions)), s_(s), length_(length), caches_(caches),
        held_(held), trace_(trace) {}

  /// x + attention(norm(x)) Woᵀ.
  Tensor attention_block(const std::string& prefix, const Tensor& x) const {
    const std::string self = prefix + "self_attn.";
    const Tensor n = norm(prefix + "input_layernorm", x, c_.hidden);
    const Index width = c_.heads * c_.head_dim, kv_width = c_.kv_heads * c_.head_dim;
    const Tensor q = positioned(self + "q_norm", linear(self + "q_proj", n, c_.hidden, width), c_.heads);
    Tensor k = positioned(self + "k_norm", linear(self + "k_proj", n, c_.hidden, kv_width), c_.kv_heads),
           v = linear(self + "v_proj", n, c_.hidden, kv_width);
    note(prefix + "input", x), note(prefix + "attn_norm_out", n);
    note(prefix + "q", q), note(prefix + "k", k), note(prefix + "v", v);
    if (caches_ != nullptr) {
      auto& [keys, values] = (*caches_)[prefix];
      keys.insert(keys.end(), k.begin(), k.end()), values.insert(values.end(), v.begin(), v.end());
      k = keys, v = values;
    }
    const Tensor heads = attention(prefix, q, k, v);
    note(prefix + "attn_output", heads);
    return sum(x, linear(self + "o_proj", heads, width, c_.hidden));
  }

  /// x + (silu(n Wgateᵀ) (n Wupᵀ)) Wdownᵀ, n = norm(x).
  Tensor feed_forward_block(const std::string& prefix, const Tensor& x) const {
    using std::exp;
    const std::string mlp = prefix + "mlp.";
    const Tensor n = norm(prefix + "post_attention_layernorm", x, c_.hidden);
    Tensor inner = linear(mlp + "gate_proj", n, c_.hidden, c_.intermediate);
    const Tensor up = linear(mlp + "up_proj", n, c_.hidden, c_.intermediate);
    note(prefix + "middle", x), note(prefix + "ffn_norm_out", n), note(prefix + "gate", inner), note(prefix + "up", up);
    for (std::size_t i = 0; i < inner.size(); ++i) inner[i] = inner[i] / (T(1) + exp(-inner[i])) * up[i];
    note(prefix + "silu_gate_output", inner);
    return sum(x, linear(mlp + "down_proj", inner, c_.intermediate, c_.hidden));
  }

  Tensor decoder_layer(const std::string& prefix, const Tensor& x) const {
    return feed_forward_block(prefix, attention_block(prefix, x));
  }

  /// Of each row, behind the last norm.
  Tensor hidden_states(const std::vector<double>& ids) const {
    const Tensor& table = weights_.at("model.embed_tokens.weight");
    const auto word = [&](Index i) { return static_cast<Index>(ids[static_cast<std::size_t>(i)]); };
    Tensor x;
    for (Index i = 0; i < s_; ++i)
      for (Index j = 0; j < c_.hidden; ++j) x.push_back(table[at(word(i), c_.hidden, j)]);
    for (Index layer = 0; layer < c_.layers; ++layer)
      x = decoder_layer("model.layers." + std::to_string(layer) + ".", x);
    return norm("model.norm", x, c_.hidden);
  }

  /// Logits of each class: mean(hidden states) W + bias, W [hidden, classes].
  Tensor class_logits(const std::vector<double>& ids, Index classes) const {
    const Tensor x = hidden_states(ids), &w = weights_.at("classifier.weight");
    Tensor all = weights_.at("classifier.bias");
    for (Index j = 0; j < c_.hidden; ++j) {
      T mean(0);
      for (Index i = 0; i < s_; ++i) mean = mean + x[at(i, c_.hidden, j)];
      mean = mean / T(static_cast<double>(s_));
      for (Index k = 0; k < classes; ++k) all[at(0, classes, k)] = all[at(0, classes, k)] + mean * w[at(j, classes, k)];
    }
    return all;
  }

  /// Logits of each row.
  Tensor logits(const std::vector<double>& ids) const {
    const Tensor x = hidden_states(ids);
    const Tensor& head = weights_.at(c_.tied_head ? "model.embed_tokens.weight" : "lm_head.weight");
    Tensor all;
    for (Index i = 0; i < s_; ++i)
      for (Index w = 0; w < c_.vocabulary; ++w) {
        T logit(0);
        for (Index j = 0; j < c_.hidden; ++j) logit = logit + head[at(w, c_.hidden, j)] * x[at(i, c_.hidden, j)];
        all.push_back(logit);
      }
    return all;
  }

  /// Of each row, -log softmax(logits)[target], times the weight of the target.
  Tensor losses(const std::vector<double>& ids, const std::vector<double>& targets,
                const std::vector<double>& class_weights) const {
    return cross_entropy(logits(ids), targets, class_weights);
  }

  /// The loss of the sequence by the mean of its rows: -weights[target] log softmax(logits)[target], or the mean over the
  /// classes of -(weight t log sigmoid(logit) + (1 - t) log(1 - sigmoid(logit))).
  Tensor classifier_loss(const std::vector<double>& ids, const std::vector<double>& targets,
                         const std::vector<double>& class_weights, bool multi_label) const {
    using std::exp, std::log;
    const Tensor x = hidden_states(ids), &head = weights_.at("classifier.weight"),
                 &bias = weights_.at("classifier.bias");
    const auto classes = std::ssize(class_weights);
    Tensor all;
    for (Index k = 0; k < classes; ++k) {
      T logit = bias[at(0, classes, k)];
      for (Index j = 0; j < c_.hidden; ++j) {
        T sum(0);
        for (Index i = 0; i < length_; ++i) sum = sum + x[at(i, c_.hidden, j)];
        logit = logit + sum / T(static_cast<double>(length_)) * head[at(j, classes, k)];
      }
      all.push_back(logit);
    }
    if (!multi_label) return cross_entropy(all, targets, class_weights);
    T sum(0);
    for (std::size_t k = 0; k < all.size(); ++k)
      sum = sum + T(class_weights[k] * targets[k]) * log(T(1) + exp(-all[k])) +
            T(1 - targets[k]) * log(T(1) + exp(all[k]));
    return {sum / T(static_cast<double>(classes))};
  }

 private:
  static Tensor cross_entropy(const Tensor& logits, const std::vector<double>& targets,
                              const std::vector<double>& class_weights) {
    using std::exp, std::log;
    const auto classes = std::ssize(class_weights);
    Tensor losses;
    for (Index i = 0; i < std::ssize(targets); ++i) {
      T total(0);
      for (Index w = 0; w < classes; ++w) total = total + exp(logits[at(i, classes, w)]);
      const auto target = static_cast<Index>(targets[static_cast<std::size_t>(i)]);
      losses.push_back(T(class_weights[static_cast<std::size_t>(target)]) *
                       (log(total) - logits[at(i, classes, target)]));
    }
    return losses;
  }

  void note(const std::string& name, const Tensor& tensor) const {
    if (trace_ != nullptr) (*trace_)[name] = tensor;
  }

  static std::size_t at(Index row, Index width, Index column) { return static_cast<std::size_t>(row * width + column); }

  static Tensor sum(Tensor x, const Tensor& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] + y[i];
    return x;
  }

  const Tensor* find(const std::string& name) const {
    const auto found = weights_.find(name);
    return found == weights_.end() ? nullptr : &found->second;
  }

  /// x / sqrt(mean(x²) + eps) w, for rows of `width` elements.
  Tensor norm(const std::string& layer, Tensor x, Index width) const {
    using std::sqrt;
    const Tensor& w = weights_.at(layer + ".weight");
    Tensor roots;
    for (Index row = 0; row < static_cast<Index>(x.size()) / width; ++row) {
      T square(0);
      for (Index j = 0; j < width; ++j) square = square + x[at(row, width, j)] * x[at(row, width, j)];
      const T root = sqrt(square / T(static_cast<double>(width)) + T(c_.eps));
      for (Index j = 0; j < width; ++j) x[at(row, width, j)] = x[at(row, width, j)] / root * w[at(0, width, j)];
      roots.push_back(T(1) / root);
    }
    note(layer + ".rrms", roots);
    return x;
  }

  /// x Wᵀ + bias + alpha / rank (x Aᵀ) Bᵀ.
  Tensor linear(const std::string& layer, const Tensor& x, Index in, Index out) const {
    const Tensor& w = weights_.at(layer + ".weight");
    const Tensor *bias = find(layer + ".bias"), *a = find(layer + ".lora_A.weight"),
                 *b = find(layer + ".lora_B.weight");
    const Index rank = c_.adapters.rank;
    Tensor y;
    for (Index i = 0; i < s_; ++i)
      for (Index o = 0; o < out; ++o) {
        T value(0);
        for (Index p = 0; p < in; ++p) value = value + w[at(o, in, p)] * x[at(i, in, p)];
        if (bias != nullptr) value = value + (*bias)[at(0, out, o)];
        for (Index r = 0; r < rank && a != nullptr; ++r) {
          T low(0);
          for (Index p = 0; p < in; ++p) low = low + (*a)[at(r, in, p)] * x[at(i, in, p)];
          value = value + T(c_.adapters.alpha / static_cast<double>(rank)) * (*b)[at(o, rank, r)] * low;
        }
        y.push_back(value);
      }
    return y;
  }

  /// Heads after their norm and rotation: pairs (j, j + d/2) turn by p theta^(-2j/d) at position p.
  Tensor positioned(const std::string& norm_layer, Tensor x, Index heads) const {
    const Index d = c_.head_dim;
    if (find(norm_layer + ".weight") != nullptr) x = norm(norm_layer, x, d);
    for (Index i = 0; i < s_ && c_.theta > 0; ++i)
      for (Index h = 0; h < heads; ++h)
        for (Index j = 0; j < d / 2; ++j) {
          const long double angle = static_cast<long double>(positions_[at(i, 1, 0)]) *
                                    std::pow(static_cast<long double>(c_.theta),
                                             -2.0L * static_cast<long double>(j) / static_cast<long double>(d));
          T &first = x[at(i * heads + h, d, j)], &second = x[at(i * heads + h, d, j + d / 2)];
          const T turned = first * T(std::cos(angle)) - second * T(std::sin(angle));
          second = second * T(std::cos(angle)) + first * T(std::sin(angle));
          first = turned;
        }
    return x;
  }

  /// Head h of queries reads key-value head floor(h / (heads / kv_heads)).
  Tensor attention(const std::string& prefix, const Tensor& q, const Tensor& k, const Tensor& v) const {
    using std::exp, std::log;
    const Index d = c_.head_dim;
    Tensor y(q.size(), T(0)), logsumexp;
    for (Index h = 0; h < c_.heads; ++h)
      for (Index i = 0; i < s_; ++i) {
        const Index g = h / (c_.heads / c_.kv_heads), keys = c_.causal ? std::min(held_ + i + 1, length_) : length_;
        Tensor weights;
        T total(0);
        for (Index j = 0; j < keys; ++j) {
          T score(0);
          for (Index e = 0; e < d; ++e)
            score = score + q[at(i * c_.heads + h, d, e)] * k[at(j * c_.kv_heads + g, d, e)];
          weights.push_back(exp(score / T(std::sqrt(static_cast<double>(d)))));
          total = total + weights.back();
        }
        logsumexp.push_back(log(total));
        for (Index j = 0; j < keys; ++j)
          for (Index e = 0; e < d; ++e) {
            T& out = y[at(i * c_.heads + h, d, e)];
            out = out + weights[at(0, keys, j)] / total * v[at(j * c_.kv_heads + g, d, e)];
          }
      }
    note(prefix + "logsumexp", logsumexp);
    return y;
  }

  const program::TransformerConfig& c_;
  const std::map<std::string, Tensor>& weights_;
  const std::vector<double> positions_;
  Index s_, length_;
  Caches* caches_;
  Index held_;
  Trace* trace_;
};

}  // namespace assay::falsify
