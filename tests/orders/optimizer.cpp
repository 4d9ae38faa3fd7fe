// AdamW.
#include <algorithm>
#include <cmath>

#include "ops/adamw_step.hpp"
#include "ops/clip_grad_norm.hpp"
#include "tests/orders/orders.hpp"

namespace assay::orders_test {
namespace {

using ops::AdamwStepArgs;

/// The contract's constants: computed in double from float32 parameters.
struct Constants {
  double lr, b1, b2, eps, decay, c1, c2, root;
  explicit Constants(const AdamwStepArgs& a)
      : lr(static_cast<float>(a.lr)), b1(static_cast<float>(a.beta1)), b2(static_cast<float>(a.beta2)),
        eps(static_cast<float>(a.eps)), decay(static_cast<float>(a.weight_decay)), c1(1 - std::pow(b1, a.step)),
        c2(1 - std::pow(b2, a.step)), root(std::sqrt(c2)) {}
};

template <class F>
void each(const AdamwStepArgs& a, F step) {
  const Constants c(a);
  for (Index i = 0; i < a.n; ++i) step(a.p(i), a.m(i), a.v(i), a.g(i), c);
  if (a.copies == 0) return;
  const View<float> rounded = a.rounded.as<float>();
  for (Index i = 0; i < a.n; ++i) rounded(0, i) = a.p(i);
}

float f(double x) { return static_cast<float>(x); }

/// torch.lerp.
float lerp(float start, float end, float weight) {
  return std::fabs(weight) < 0.5F ? start + weight * (end - start) : end - (end - start) * (1 - weight);
}

void fused_double(const AdamwStepArgs& a) {
  each(a, [](float& p, float& m, float& v, float g, const Constants& c) {
    if (c.decay != 0) p = f(p - c.lr * c.decay * p);
    m = f(c.b1 * m + (1 - c.b1) * g);
    v = f(c.b2 * v + (1 - c.b2) * g * g);
    const float c1 = f(c.c1), c2 = f(c.c2), step = f(c.lr / c1), spread = f(std::sqrt(v) / std::sqrt(c2) + c.eps);
    p -= step * m / spread;
  });
}
/// Means by lerp, of g and of its square.
void fused_lerp(const AdamwStepArgs& a) {
  each(a, [](float& p, float& m, float& v, float g, const Constants& c) {
    p -= f(c.lr) * f(c.decay) * p;
    m = lerp(m, g, f(1 - c.b1));
    v = lerp(v, g * g, f(1 - c.b2));
    const float step = f(c.lr / c.c1), spread = std::sqrt(v) / f(c.root) + f(c.eps);
    p -= step * m / spread;
  });
}
void single_tensor(const AdamwStepArgs& a) {
  each(a, [](float& p, float& m, float& v, float g, const Constants& c) {
    p *= f(1 - c.lr * c.decay);
    m = lerp(m, g, f(1 - c.b1));
    v *= f(c.b2);
    v += f(1 - c.b2) * (g * g);
    const float spread = std::sqrt(v) / f(c.root) + f(c.eps);
    p += f(-c.lr / c.c1) * m / spread;
  });
}
/// addcdiv computed as value * (m / spread).
void foreach(const AdamwStepArgs& a) {
  each(a, [](float& p, float& m, float& v, float g, const Constants& c) {
    p *= f(1 - c.lr * c.decay);
    m = lerp(m, g, f(1 - c.b1));
    v = v * f(c.b2) + f(1 - c.b2) * g * g;
    p += f(-c.lr / c.c1) * (m / (std::sqrt(v) / f(c.root) + f(c.eps)));
  });
}
void apex(const AdamwStepArgs& a) {
  each(a, [](float& p, float& m, float& v, float g, const Constants& c) {
    m = f(c.b1) * m + f(1 - c.b1) * g;
    v = f(c.b2) * v + f(1 - c.b2) * g * g;
    const float mean = m / f(c.c1), square = v / f(c.c2), spread = std::sqrt(square) + f(c.eps);
    const float update = mean / spread + f(c.decay) * p;
    p = p - f(c.lr) * update;
  });
}
/// lerp as two fused steps.
void llm_c(const AdamwStepArgs& a) {
  const auto mix = [](float start, float end, float weight) {
    return std::fma(weight, end, std::fma(-weight, start, start));
  };
  each(a, [&](float& p, float& m, float& v, float g, const Constants& c) {
    m = mix(g, m, f(c.b1));
    v = mix(g * g, v, f(c.b2));
    const float mean = m / f(c.c1), square = v / f(c.c2), old = p;
    p = old - f(c.lr) * (mean / (std::sqrt(square) + f(c.eps)) + f(c.decay) * old);
  });
}
void ggml(const AdamwStepArgs& a) {
  each(a, [](float& p, float& m, float& v, float g, const Constants& c) {
    m = m * f(c.b1) + g * f(1 - c.b1);
    v = v * f(c.b2) + g * g * f(1 - c.b2);
    const float mean = m * f(1 / c.c1), spread = std::sqrt(v * f(1 / c.c2)) + f(c.eps);
    p = p * f(1 - c.lr * c.decay) - f(c.lr) * mean / spread;
  });
}
/// Omits the decay after the update, which would be another formula.
void bitsandbytes(const AdamwStepArgs& a) {
  each(a, [](float& p, float& m, float& v, float g, const Constants& c) {
    p *= f(1 - c.lr * c.decay);
    m = m * f(c.b1) + f(1 - c.b1) * g;
    v = v * f(c.b2) + f(1 - c.b2) * g * g;
    p = p + f(-c.lr * c.root / c.c1) * (m / (std::sqrt(v) + f(c.eps) * f(c.root)));
  });
}

using ops::ClipGradNormArgs;

/// Sums squares in float, or squares and adds the norms of chunks again. Every element is multiplied. llm.c adds no eps.
template <Index chunk>
void clip(const ClipGradNormArgs& a) {
  float all = 0;
  for (Index first = 0; first < a.n; first += chunk) {
    float sum = 0;
    for (Index i = first; i < std::min(a.n, first + chunk); ++i) sum += a.g(i) * a.g(i);
    all += sum;
  }
  const float norm = std::sqrt(all), limit = f(a.max_norm);
  a.norm(0) = norm;
  const float ratio = limit / (norm + f(a.eps)), factor = ratio >= 1 ? 1 : ratio;  // NaN stays
  for (Index i = 0; i < a.n; ++i) a.g(i) *= factor;
}

}  // namespace

Orders optimizer_orders() {
  const auto adamw = [](std::string_view project, std::string_view place, std::string_view words,
                        void (*run)(const AdamwStepArgs&)) {
    return order<AdamwStepArgs>("adamw_step", project, place, words, run);
  };
  return {adamw("PyTorch", "aten/src/ATen/native/cuda/fused_adam_utils.cuh, adam_math",
                "scalars in double, decay subtracted", fused_double),
          adamw("PyTorch", "aten/src/ATen/native/cpu/FusedAdamKernel.cpp, adam_fused_step_impl", "means as lerp",
                fused_lerp),
          adamw("PyTorch", "torch/optim/adam.py, _single_tensor_adam",
                "step size times m over the root, one after another", single_tensor),
          adamw("PyTorch", "torch/optim/adam.py, _multi_tensor_adam", "step size times the quotient", foreach),
          adamw("Apex", "csrc/multi_tensor_adam.cu, AdamFunctor", "decay within the update", apex),
          adamw("llm.c", "llmc/adamw.cuh, adamw_update", "lerp as two fused steps", llm_c),
          adamw("ggml", "ggml/src/ggml-cpu/ops.cpp, ggml_compute_forward_opt_step_adamw_f32", "corrections as products",
                ggml),
          adamw("bitsandbytes", "csrc/kernels.cu, kOptimizer32bit1State and 2State",
                "eps scaled by the correction's root", bitsandbytes),
          order<ClipGradNormArgs>("clip_grad_norm", "llm.c", "llmc/global_norm.cuh, global_norm_squared_kernel",
                                  "squares by blocks of 512", clip<512>),
          order<ClipGradNormArgs>("clip_grad_norm", "PyTorch", "torch/nn/utils/clip_grad.py, clip_grads_with_norm_",
                                  "squares by blocks of 16", clip<16>)};
}

}  // namespace assay::orders_test
