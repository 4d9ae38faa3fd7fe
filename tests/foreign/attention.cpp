// Attention in C++ with raw pointers and strides, as in other projects; attention.yaml is its shim.
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

/// A tensor of [batch, sequence, heads, d] or a similar layout; the last axis is dense.
template <class T>
struct Strided {
  T* data;
  std::int64_t batch, row, head;
  T* at(std::int64_t b, std::int64_t i, std::int64_t h) const { return data + b * batch + i * row + h * head; }
};

struct Shape {
  std::int64_t batch, s, heads, kv_heads, d;
};

enum class Fault { none, stale_mean, position_from_zero };

/// Returns the number of keys that query i of a sequence sees.
template <Fault fault>
std::int64_t keys_of(std::int32_t length, std::int32_t start, std::int64_t i, bool causal) {
  if (!causal) return length;
  const std::int64_t last = (fault == Fault::position_from_zero ? 0 : start) + i + 1;
  return last < 0 ? 0 : last < length ? last : length;
}

/// Computes one query by online softmax, a key at a time: sums are rescaled whenever the largest score grows. Returns
/// the logarithm of the sum; a query that sees no key has mean 0 and returns -inf.
template <Fault fault>
float attend(const float* q, const Strided<const float>& k, const Strided<const float>& v, std::int64_t b,
             std::int64_t h, std::int64_t keys, std::int64_t d, float scale, float* y) {
  std::vector<float> mean(static_cast<std::size_t>(d), 0.0F);
  float largest = -INFINITY, sum = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    float score = 0;
    for (std::int64_t c = 0; c < d; ++c) score += q[c] * k.at(b, j, h)[c];
    score *= scale;
    if (!(score <= largest)) {  // larger, or NaN
      const float rescale = largest == -INFINITY ? 0 : std::exp(largest - score);
      sum *= rescale;
      if (fault != Fault::stale_mean)
        for (float& m : mean) m *= rescale;
      largest = score;
    }
    const float weight = largest == -INFINITY ? 0 : std::exp(score - largest);
    sum += weight;
    for (std::int64_t c = 0; c < d; ++c) mean[static_cast<std::size_t>(c)] += weight * v.at(b, j, h)[c];
  }
  for (std::int64_t c = 0; c < d; ++c) y[c] = sum == 0 ? 0 : mean[static_cast<std::size_t>(c)] / sum;
  return sum == 0 ? -INFINITY : largest + std::log(sum);
}

template <Fault fault>
void attention(const Strided<float>& y, const Strided<float>& logsumexp, const Strided<const float>& q,
               const Strided<const float>& k, const Strided<const float>& v, const std::int32_t* lengths,
               const std::int32_t* starts, const Shape& n, float scale, bool causal) {
  for (std::int64_t b = 0; b < n.batch; ++b)
    for (std::int64_t h = 0; h < n.heads; ++h)
      for (std::int64_t i = 0; i < n.s; ++i)
        *logsumexp.at(b, i, h) =
            attend<fault>(q.at(b, i, h), k, v, b, h / (n.heads / n.kv_heads),
                          keys_of<fault>(lengths[b], starts[b], i, causal), n.d, scale, y.at(b, i, h));
}

}  // namespace

#define ATTENTION(name, fault)                                                                                    \
  extern "C" void name(float* y, std::int64_t y_batch, std::int64_t y_row, std::int64_t y_head, float* logsumexp, \
                       std::int64_t l_batch, std::int64_t l_head, const float* q, std::int64_t q_batch,           \
                       std::int64_t q_row, std::int64_t q_head, const float* k, std::int64_t k_batch,             \
                       std::int64_t k_row, std::int64_t k_head, const float* v, std::int64_t v_batch,             \
                       std::int64_t v_row, std::int64_t v_head, const std::int32_t* lengths,                      \
                       const std::int32_t* starts, std::int64_t batch, std::int64_t s, std::int64_t heads,        \
                       std::int64_t kv_heads, std::int64_t d, float scale, int causal) {                          \
    attention<fault>({y, y_batch, y_row, y_head}, {logsumexp, l_batch, 1, l_head}, {q, q_batch, q_row, q_head},   \
                     {k, k_batch, k_row, k_head}, {v, v_batch, v_row, v_head}, lengths, starts,                   \
                     {batch, s, heads, kv_heads, d}, scale, causal != 0);                                         \
  }                                                                                                               \
  extern "C" const char* name##_declares() { return "online_tile=1"; } /* bounds allow for a rescaling at every key */

ATTENTION(attention_online, Fault::none)
/// Does not rescale the sum of values.
ATTENTION(attention_stale_mean, Fault::stale_mean)
/// Assumes that every sequence starts at its first key: correct for whole sequences, wrong for a continuation.
ATTENTION(attention_position_from_zero, Fault::position_from_zero)
