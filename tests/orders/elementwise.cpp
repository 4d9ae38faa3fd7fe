// Gated activations and gradients of embeddings.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/embedding_backward.hpp"
#include "ops/silu_mul.hpp"
#include "ops/silu_mul_backward.hpp"
#include "tests/orders/orders.hpp"

namespace assay::orders_test {
namespace {

using ops::EmbeddingBackwardArgs;
using ops::SiluMulArgs;
using ops::SiluMulBackwardArgs;

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

template <class One>
auto forward(One one) {
  return [one](const SiluMulArgs& a) {
    const auto gate = a.gate.as<const float>(), up = a.up.as<const float>();
    const auto y = a.y.as<float>();
    for (Index i = 0; i < a.rows; ++i)
      for (Index j = 0; j < a.n; ++j) y(i, j) = one(gate(i, j), up(i, j));
  };
}
template <class Gate, class Up>
auto backward(Gate of_gate, Up of_up) {
  return [=](const SiluMulBackwardArgs& a) {
    const auto gate = a.gate.as<const float>(), up = a.up.as<const float>(), dy = a.dy.as<const float>();
    const auto dgate = a.dgate.as<float>(), dup = a.dup.as<float>();
    for (Index i = 0; i < a.rows; ++i)
      for (Index j = 0; j < a.n; ++j) {
        dgate(i, j) = of_gate(gate(i, j), up(i, j), dy(i, j));
        dup(i, j) = of_up(gate(i, j), dy(i, j));
      }
  };
}

/// Sorts tokens by their row and sums each row in parts of 10.
void sorted(const EmbeddingBackwardArgs& a) {
  const auto dy = a.dy.as<const float>();
  std::vector<Index> order(static_cast<std::size_t>(a.t));
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(order, {}, [&](Index t) { return a.ids(t); });
  for (Index c = 0; c < a.h; ++c) {
    for (Index row = 0; row < a.v; ++row) a.dtable(row, c) = 0;
    for (std::size_t first = 0; first < order.size();) {
      float part = 0;
      const auto row = a.ids(order[first]);
      std::size_t next = first;
      for (; next < order.size() && next < first + 10 && a.ids(order[next]) == row; ++next) part += dy(order[next], c);
      a.dtable(row, c) += part;
      first = next;
    }
  }
}
/// A possible order of atomics: from the last token.
void backwards(const EmbeddingBackwardArgs& a) {
  const auto dy = a.dy.as<const float>();
  for (Index c = 0; c < a.h; ++c) {
    for (Index row = 0; row < a.v; ++row) a.dtable(row, c) = 0;
    for (Index t = a.t; t-- > 0;) a.dtable(a.ids(t), c) += dy(t, c);
  }
}

}  // namespace

Orders elementwise_orders() {
  return {
      order<SiluMulArgs>("silu_mul", "vLLM", "csrc/activation_kernels.cu, silu_kernel", "x / (1 + exp(-x)), then up",
                         forward([](float x, float u) { return x / (1 + std::exp(-x)) * u; })),
      order<SiluMulArgs>("silu_mul", "Liger", "src/liger_kernel/ops/swiglu.py, _swiglu_forward_kernel",
                         "x sigmoid(x), then up", forward([](float x, float u) { return x * sigmoid(x) * u; })),
      order<SiluMulArgs>("silu_mul", "ggml", "ggml/src/ggml-cpu/vec.cpp, ggml_vec_swiglu_f32", "silu, then the gate",
                         forward([](float x, float u) {
                           const float s = x / (1 + std::exp(-x));
                           return s * u;
                         })),
      order<SiluMulBackwardArgs>("silu_mul_backward", "Liger",
                                 "src/liger_kernel/ops/swiglu.py, _swiglu_backward_kernel", "dy (silu (1 - s) + s) up",
                                 backward(
                                     [](float x, float u, float g) {
                                       const float s = sigmoid(x), silu = x * s;
                                       return g * (silu * (1 - s) + s) * u;
                                     },
                                     [](float x, float g) { return g * (x * sigmoid(x)); })),
      order<SiluMulBackwardArgs>("silu_mul_backward", "Unsloth", "unsloth/kernels/swiglu.py, _DWf_DW_dfg_kernel",
                                 "dy up s (1 + x (1 - s))",
                                 backward(
                                     [](float x, float u, float g) {
                                       const float s = sigmoid(x);
                                       return (g * u) * s * (1 + x * (1 - s));
                                     },
                                     [](float x, float g) { return g * (sigmoid(x) * x); })),
      order<SiluMulBackwardArgs>("silu_mul_backward", "PyTorch",
                                 "aten/src/ATen/native/cpu/Activation.cpp, silu_backward_kernel",
                                 "dy up, then s (1 + x (1 - s))",
                                 backward(
                                     [](float x, float u, float g) {
                                       const float s = 1 / (1 + std::exp(-x));
                                       return (g * u) * s * (1 + x * (1 - s));
                                     },
                                     [](float x, float g) { return g * (x / (1 + std::exp(-x))); })),
      order<EmbeddingBackwardArgs>(
          "embedding_backward", "PyTorch",
          "aten/src/ATen/native/cuda/EmbeddingBackwardKernel.cu, embedding_backward_cuda_kernel",
          "sorted, by parts of 10", sorted),
      order<EmbeddingBackwardArgs>("embedding_backward", "Liger",
                                   "src/liger_kernel/ops/experimental/embedding.py, embedding_backward_kernel",
                                   "atomics in one order", backwards)};
}

}  // namespace assay::orders_test
