// Normalization of rows and its gradients.
#include <cmath>
#include <vector>

#include "ops/rmsnorm.hpp"
#include "ops/rmsnorm_backward.hpp"
#include "tests/orders/orders.hpp"

namespace assay::orders_test {
namespace {

using ops::RmsnormArgs;
using ops::RmsnormBackwardArgs;

template <class Sum, bool by_root>
void forward(const RmsnormArgs& a) {
  const auto x = a.x.as<const float>();
  const auto y = a.y.as<float>();
  for (Index i = 0; i < a.rows; ++i) {
    Sum squares = 0;
    for (Index j = 0; j < a.n; ++j) squares += static_cast<Sum>(x(i, j) * x(i, j));
    const auto mean = static_cast<float>(squares / static_cast<Sum>(a.n));
    const float r = by_root ? 1 / std::sqrt(mean + static_cast<float>(a.eps))
                            : static_cast<float>(1 / std::sqrt(static_cast<double>(mean + static_cast<float>(a.eps))));
    a.rrms(i) = r;
    for (Index j = 0; j < a.n; ++j) y(i, j) = (x(i, j) * r) * a.weight(j);
  }
}
/// Multiplies by the weight first.
void weight_first(const RmsnormArgs& a) {
  const auto x = a.x.as<const float>();
  const auto y = a.y.as<float>();
  for (Index i = 0; i < a.rows; ++i) {
    float lane[32] = {};
    for (Index j = 0; j < a.n; ++j) lane[j % 32] = std::fma(x(i, j), x(i, j), lane[j % 32]);
    for (int half = 16; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
    const float r = 1 / std::sqrt(lane[0] * (1 / static_cast<float>(a.n)) + static_cast<float>(a.eps));
    a.rrms(i) = r;
    for (Index j = 0; j < a.n; ++j) y(i, j) = r * (x(i, j) * a.weight(j));
  }
}

template <class Row>
void backward(const RmsnormBackwardArgs& a, Row row, bool product_first) {
  const auto x = a.x.as<const float>(), dy = a.dy.as<const float>();
  for (Index i = 0; i < a.rows; ++i) row(a, i);
  for (Index j = 0; j < a.n; ++j) {
    float sum = 0;
    for (Index i = 0; i < a.rows; ++i)
      sum += product_first ? dy(i, j) * x(i, j) * a.rrms(i) : dy(i, j) * (x(i, j) * a.rrms(i));
    a.dweight(j) = sum;
  }
}
/// Computes rrms / n times (n a - xn sum).
void torch_row(const RmsnormBackwardArgs& a, Index i) {
  const auto x = a.x.as<const float>(), dy = a.dy.as<const float>();
  const auto dx = a.dx.as<float>();
  const float n = static_cast<float>(a.n), r = a.rrms(i), factor = (1 / n) * r;
  float sum = 0;
  for (Index j = 0; j < a.n; ++j) sum += dy(i, j) * a.weight(j) * x(i, j) * r;
  for (Index j = 0; j < a.n; ++j) {
    float g = n * a.weight(j) * dy(i, j);
    g -= x(i, j) * r * sum;
    dx(i, j) = g * factor;
  }
}
void apex_row(const RmsnormBackwardArgs& a, Index i) {
  const auto x = a.x.as<const float>(), dy = a.dy.as<const float>();
  const auto dx = a.dx.as<float>();
  const float n = static_cast<float>(a.n), r = a.rrms(i), factor = (1 / n) * r;
  float sum = 0;
  for (Index j = 0; j < a.n; ++j) sum += dy(i, j) * a.weight(j) * (x(i, j) * r);
  for (Index j = 0; j < a.n; ++j) {
    float g = n * (dy(i, j) * a.weight(j));
    g -= (x(i, j) * r) * sum;
    dx(i, j) = g * factor;
  }
}
void liger_row(const RmsnormBackwardArgs& a, Index i) {
  const auto x = a.x.as<const float>(), dy = a.dy.as<const float>();
  const auto dx = a.dx.as<float>();
  const float n = static_cast<float>(a.n), r = a.rrms(i);
  float sum = 0;
  for (Index j = 0; j < a.n; ++j) sum += (dy(i, j) * a.weight(j)) * x(i, j);
  for (Index j = 0; j < a.n; ++j) {
    float g = r * (dy(i, j) * a.weight(j));
    g += r * (-(1 / n) * r * r * sum * x(i, j));
    dx(i, j) = g;
  }
}
void ggml_row(const RmsnormBackwardArgs& a, Index i) {
  const auto x = a.x.as<const float>(), dy = a.dy.as<const float>();
  const auto dx = a.dx.as<float>();
  const float n = static_cast<float>(a.n), r = a.rrms(i);
  double sum = 0;
  for (Index j = 0; j < a.n; ++j) sum += static_cast<double>(dy(i, j) * a.weight(j) * x(i, j));
  const auto along = static_cast<float>(-sum) * (r * r / n);
  for (Index j = 0; j < a.n; ++j) dx(i, j) = (x(i, j) * along + dy(i, j) * a.weight(j)) * r;
}

Order gradient(std::string_view project, std::string_view place, std::string_view words,
               void (*row)(const RmsnormBackwardArgs&, Index), bool product_first) {
  return order<RmsnormBackwardArgs>("rmsnorm_backward", project, place, words,
                                    [=](const RmsnormBackwardArgs& a) { backward(a, row, product_first); });
}

}  // namespace

Orders normalization_orders() {
  return {order<RmsnormArgs>("rmsnorm", "ggml", "ggml/src/ggml-cpu/ops.cpp, ggml_compute_forward_rms_norm_f32",
                             "squares summed in double", forward<double, true>),
          order<RmsnormArgs>("rmsnorm", "Liger", "src/liger_kernel/ops/rms_norm.py, _rms_norm_forward_kernel",
                             "x rrms, then the weight", forward<float, false>),
          order<RmsnormArgs>("rmsnorm", "FlashInfer", "include/flashinfer/norm.cuh, RMSNormKernel",
                             "sums by lanes, then by halves", weight_first),
          gradient("PyTorch", "aten/src/ATen/native/cuda/layer_norm_kernel.cu, compute_gI", "rrms / n (n a - xn sum)",
                   torch_row, true),
          gradient("Apex", "csrc/layer_norm_cuda_kernel.cu, cuComputeGradInput",
                   "rrms / n (n a - xn sum), normalized first", apex_row, false),
          gradient("Liger", "src/liger_kernel/ops/rms_norm.py, _rms_norm_backward_kernel",
                   "rrms a - rrms (rrms rrms / n) sum x", liger_row, false),
          gradient("ggml", "ggml/src/ggml-cpu/ops.cpp, ggml_compute_forward_rms_norm_back_f32",
                   "(x c + a) rrms, sums in double", ggml_row, true)};
}

}  // namespace assay::orders_test
