// Softmax, cross entropy and their gradients.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cross_entropy.hpp"
#include "ops/cross_entropy_backward.hpp"
#include "ops/softmax.hpp"
#include "ops/softmax_backward.hpp"
#include "tests/orders/orders.hpp"

namespace assay::orders_test {
namespace {

using ops::CrossEntropyArgs;
using ops::CrossEntropyBackwardArgs;
using ops::SoftmaxArgs;
using ops::SoftmaxBackwardArgs;

/// Returns the maximum, or NaN if there is one.
template <class At>
float largest(Index n, At at) {
  float most = -INFINITY;
  for (Index j = 0; j < n; ++j) most = std::isnan(at(j)) || std::isnan(most) ? NAN : std::max(most, at(j));
  return most;
}

template <class Sum, bool reciprocal>
void two_passes(const SoftmaxArgs& a) {
  const auto x = a.x.as<const float>();
  const auto y = a.y.as<float>();
  for (Index i = 0; i < a.rows; ++i) {
    const float most = largest(a.n, [&](Index j) { return x(i, j); });
    Sum sum = 0;
    for (Index j = 0; j < a.n; ++j) sum += y(i, j) = most == -INFINITY ? 0 : std::exp(x(i, j) - most);
    const auto inverse = static_cast<float>(1 / sum), total = static_cast<float>(sum);
    for (Index j = 0; j < a.n; ++j) y(i, j) = most == -INFINITY ? 0 : reciprocal ? y(i, j) * inverse : y(i, j) / total;
  }
}

struct Running {
  float most = -INFINITY, sum = 0;
};
/// Returns the running maximum and sum by tiles; the sum is rescaled when the maximum grows.
template <class At>
Running running(Index n, Index tile, At at) {
  Running r;
  for (Index first = 0; first < n; first += tile) {
    const Index end = std::min(n, first + tile);
    const float here = largest(end - first, [&](Index j) { return at(first + j); });
    const float next = std::isnan(here) || std::isnan(r.most) ? NAN : std::max(r.most, here);
    if (next == -INFINITY) continue;
    float sum = 0;
    for (Index j = first; j < end; ++j) sum += std::exp(at(j) - next);
    r.sum = (r.most == -INFINITY ? 0 : r.sum * std::exp(r.most - next)) + sum;
    r.most = next;
  }
  return r;
}
template <Index tile>
void online(const SoftmaxArgs& a) {
  const auto x = a.x.as<const float>();
  const auto y = a.y.as<float>();
  for (Index i = 0; i < a.rows; ++i) {
    const Running r = running(a.n, tile, [&](Index j) { return x(i, j); });
    for (Index j = 0; j < a.n; ++j) y(i, j) = r.most == -INFINITY ? 0 : std::exp(x(i, j) - r.most) / r.sum;
  }
}

void two_products(const SoftmaxBackwardArgs& a) {
  const auto y = a.y.as<const float>(), dy = a.dy.as<const float>();
  const auto dx = a.dx.as<float>();
  for (Index i = 0; i < a.rows; ++i) {
    float sum = 0;
    for (Index j = 0; j < a.n; ++j) sum += dy(i, j) * y(i, j);
    for (Index j = 0; j < a.n; ++j) dx(i, j) = dy(i, j) * y(i, j) - y(i, j) * sum;
  }
}
void difference(const SoftmaxBackwardArgs& a) {
  const auto y = a.y.as<const float>(), dy = a.dy.as<const float>();
  const auto dx = a.dx.as<float>();
  for (Index i = 0; i < a.rows; ++i) {
    float sum = 0;
    for (Index j = a.n; j-- > 0;) sum += y(i, j) * dy(i, j);
    for (Index j = 0; j < a.n; ++j) dx(i, j) = (dy(i, j) - sum) * y(i, j);
  }
}

/// (x - m) - log(sum), in two passes or online.
template <Index tile>
void log_softmax(const CrossEntropyArgs& a) {
  const auto logits = a.logits.as<const float>();
  float losses = 0, weights = 0;
  for (Index i = 0; i < a.rows; ++i) {
    const auto at = [&](Index j) { return logits(i, j); };
    Running r;
    if (tile > 0) {
      r = running(a.classes, std::max<Index>(tile, 1), at);
      if (r.most == -INFINITY) r.sum = NAN;  // exp(-inf - -inf) of each chunk
    } else {
      r.most = largest(a.classes, at);
      for (Index j = 0; j < a.classes; ++j) r.sum += std::exp(at(j) - r.most);
    }
    const float logarithm = std::log(r.sum), weight = a.weights(a.targets(i));
    a.loss(i) = -(at(a.targets(i)) - r.most - logarithm) * weight;
    a.logsumexp(i) = r.most + logarithm;
    losses += a.loss(i), weights += weight;
  }
  a.normalizer(0) = a.reduction == 1 ? weights : 1;
  a.total(0) = a.reduction == 1 ? losses / weights : losses;
}

/// Calls `one` for each element with the row's weight and its gradient dloss + dtotal / normalizer.
template <class One>
void gradient(const CrossEntropyBackwardArgs& a, One one) {
  const auto logits = a.logits.as<const float>();
  const auto dlogits = a.dlogits.as<float>();
  for (Index i = 0; i < a.rows; ++i)
    for (Index j = 0; j < a.classes; ++j)
      dlogits(i, j) = one(std::exp(logits(i, j) - a.logsumexp(i)), a.weights(a.targets(i)),
                          a.dloss(i) + a.dtotal(0) / a.normalizer(0), j == a.targets(i));
}

}  // namespace

Orders softmax_orders() {
  return {
      order<SoftmaxArgs>("softmax", "PyTorch", "aten/src/ATen/native/cuda/PersistentSoftmax.cuh, softmax_warp_forward",
                         "terms divided by the sum", two_passes<float, false>),
      order<SoftmaxArgs>("softmax", "ggml", "ggml/src/ggml-cpu/ops.cpp, ggml_compute_forward_soft_max_f32",
                         "sum in double, terms times its reciprocal", two_passes<double, true>),
      order<SoftmaxArgs>("softmax", "FlashInfer", "include/flashinfer/sampling.cuh, OnlineSoftmaxFusedKernel",
                         "online by tiles of 32", online<32>, {.online_tile = 32}),
      order<SoftmaxArgs>("softmax", "Liger", "src/liger_kernel/ops/softmax.py, _softmax_multi_block_forward_kernel",
                         "online by tiles of 64", online<64>, {.online_tile = 64}),
      order<SoftmaxBackwardArgs>("softmax_backward", "PyTorch",
                                 "aten/src/ATen/native/cuda/SoftMax.cu, SoftMaxBackwardEpilogue", "two products",
                                 two_products),
      order<SoftmaxBackwardArgs>("softmax_backward", "Liger",
                                 "src/liger_kernel/ops/softmax.py, _softmax_single_block_backward_kernel",
                                 "the difference first", difference),
      order<CrossEntropyArgs>("cross_entropy", "PyTorch",
                              "aten/src/ATen/native/cpu/SoftMaxKernel.cpp, vec_log_softmax_lastdim_kernel",
                              "(x - m) - log sum", log_softmax<0>),
      order<CrossEntropyArgs>("cross_entropy", "Unsloth", "unsloth/kernels/cross_entropy_loss.py, by chunks",
                              "online by tiles of 32", log_softmax<32>, {.online_tile = 32}),
      order<CrossEntropyBackwardArgs>("cross_entropy_backward", "PyTorch",
                                      "aten/src/ATen/native/cuda/PersistentSoftmax.cuh, softmax_warp_backward",
                                      "g - p g",
                                      [](const CrossEntropyBackwardArgs& a) {
                                        gradient(a, [](float p, float w, float g, bool own) {
                                          const float scaled = w * g;
                                          return own ? p * scaled - scaled : p * scaled;
                                        });
                                      }),
      order<CrossEntropyBackwardArgs>(
          "cross_entropy_backward", "Apex", "apex/contrib/csrc/xentropy/xentropy_kernel.cu, apply", "g (p - 1)",
          [](const CrossEntropyBackwardArgs& a) {
            gradient(a, [](float p, float w, float g, bool own) { return (w * g) * (p - (own ? 1.0F : 0.0F)); });
          }),
      order<CrossEntropyBackwardArgs>(
          "cross_entropy_backward", "Liger", "src/liger_kernel/ops/cross_entropy.py, liger_cross_entropy_kernel",
          "(p - 1) w, then g", [](const CrossEntropyBackwardArgs& a) {
            gradient(a, [](float p, float w, float g, bool own) { return ((p - (own ? 1.0F : 0.0F)) * w) * g; });
          })};
}

}  // namespace assay::orders_test
