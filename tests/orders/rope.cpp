// Rotary embeddings with frequencies computed in float32.
#include <cmath>
#include <vector>

#include "core/half.hpp"
#include "ops/rope.hpp"
#include "ops/rope_backward.hpp"
#include "tests/orders/orders.hpp"

namespace assay::orders_test {
namespace {

using Angle = float (*)(float position, float theta, Index i, Index d);

/// Returns position * (1 / theta^(2i/d)).
float of_powers(float position, float theta, Index i, Index d) {
  return position * (1 / std::pow(theta, static_cast<float>(2 * i) / static_cast<float>(d)));
}
/// Returns position * exp(-2i log(theta) / d).
float of_exponentials(float position, float theta, Index i, Index d) {
  return position * std::exp(static_cast<float>(2 * i) * -(std::log(theta) / static_cast<float>(d)));
}
/// Multiplies the position by theta^(-2/d), i times.
float of_products(float position, float theta, Index i, Index d) {
  const float step = std::pow(theta, -2.0F / static_cast<float>(d));
  float angle = position;
  for (Index k = 0; k < i; ++k) angle *= step;
  return angle;
}
/// Returns position * (theta^(-2/d))^i.
float of_power_of_step(float position, float theta, Index i, Index d) {
  return position * std::pow(std::pow(theta, -2.0F / static_cast<float>(d)), static_cast<float>(i));
}

template <class Args>
void rotate(const Args& a, View<const float> x, View<float> y, Angle angle, float direction) {
  for (Index row = 0; row < a.rows; ++row)
    for (Index i = 0; i < a.d / 2; ++i) {
      const float at = angle(static_cast<float>(a.positions(row)), static_cast<float>(a.theta), i, a.d);
      const float c = std::cos(at), s = direction * std::sin(at);
      const Index first = a.interleaved != 0 ? 2 * i : i, second = a.interleaved != 0 ? 2 * i + 1 : i + a.d / 2;
      for (Index h = 0; h < a.heads; ++h) {
        const float x1 = x(row, h, first), x2 = x(row, h, second);
        y(row, h, first) = x1 * c - x2 * s;
        y(row, h, second) = x2 * c + x1 * s;
      }
    }
}

/// Uses a table of cosines and sines in bfloat16, and rounds every operation to bfloat16.
template <class Args>
void rotate_bf16(const Args& a, View<const BFloat16> x, View<BFloat16> y, float direction) {
  const auto held = [](float v) { return widen(to_bfloat16(v)); };
  for (Index row = 0; row < a.rows; ++row)
    for (Index i = 0; i < a.d / 2; ++i) {
      const float at = of_powers(static_cast<float>(a.positions(row)), static_cast<float>(a.theta), i, a.d);
      const float c = held(std::cos(at)), s = direction * held(std::sin(at));
      const Index first = a.interleaved != 0 ? 2 * i : i, second = a.interleaved != 0 ? 2 * i + 1 : i + a.d / 2;
      for (Index h = 0; h < a.heads; ++h) {
        const float x1 = widen(x(row, h, first)), x2 = widen(x(row, h, second));
        y(row, h, first) = to_bfloat16(held(x1 * c) - held(x2 * s));
        y(row, h, second) = to_bfloat16(held(x2 * c) + held(x1 * s));
      }
    }
}

}  // namespace

Orders rope_orders() {
  struct Row {
    std::string_view project, place, words;
    Angle angle;
    Frequencies frequencies;
  };
  const Row rows[] = {{"transformers", "src/transformers/modeling_rope_utils.py, _compute_default_rope_parameters",
                       "1 / theta^(2i/d)", of_powers, Frequencies::powers},
                      {"vLLM", "vllm/model_executor/layers/rotary_embedding/base.py, _compute_inv_freq",
                       "1 / theta^(2i/d), table of positions", of_powers, Frequencies::powers},
                      {"FlashInfer", "include/flashinfer/pos_enc.cuh, BatchQKApplyRotary",
                       "exp of the exponent's logarithm", of_exponentials, Frequencies::powers},
                      {"llama.cpp", "ggml/src/ggml-cpu/ops.cpp, ggml_rope_cache_init",
                       "position times the step, again and again", of_products, Frequencies::products},
                      {"llama.cpp", "ggml/src/ggml-cuda/rope.cu, rope_norm", "position times the step's power",
                       of_power_of_step, Frequencies::products}};
  Orders orders;
  for (const Row& row : rows) {
    orders.push_back(order<ops::RopeArgs>(
        "rope", row.project, row.place, row.words,
        [angle = row.angle](const ops::RopeArgs& a) { rotate(a, a.x.as<const float>(), a.y.as<float>(), angle, 1); },
        {.frequencies = row.frequencies}));
    orders.push_back(order<ops::RopeBackwardArgs>("rope_backward", row.project, row.place, row.words,
                                                  [angle = row.angle](const ops::RopeBackwardArgs& a) {
                                                    rotate(a, a.dy.as<const float>(), a.dx.as<float>(), angle, -1);
                                                  },
                                                  {.frequencies = row.frequencies}));
  }
  orders.push_back(order<ops::RopeArgs>(
      "rope", "vLLM", "csrc/pos_encoding_kernels.cu, apply_token_rotary_embedding", "table and products in bfloat16",
      [](const ops::RopeArgs& a) { rotate_bf16(a, a.x.as<const BFloat16>(), a.y.as<BFloat16>(), 1); },
      {.accumulator = Format::bf16, .frequencies = Frequencies::powers}));
  orders.back().kernel.storage = DType::bf16;
  return orders;
}

}  // namespace assay::orders_test
