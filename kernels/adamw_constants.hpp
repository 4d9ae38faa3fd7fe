// The constants of an AdamW step, as its contract pins them: computed in double from the float32 parameters, then
// rounded once.
#pragma once

#include <cmath>

#include "ops/adamw_step.hpp"

namespace assay {

/// p' = decay p - size m' / (scale sqrt(v') + eps) with m' = keep1 m + take1 g, v' = keep2 v + take2 g^2.
struct AdamwConstants {
  float keep1, take1, keep2, take2, decay, size, scale, eps;
};

inline AdamwConstants adamw_constants(const ops::AdamwStepArgs& args) {
  const auto f32 = [](double x) { return static_cast<float>(x); };
  const double lr = f32(args.lr), beta1 = f32(args.beta1), beta2 = f32(args.beta2);
  return {.keep1 = f32(beta1),
          .take1 = f32(1 - beta1),
          .keep2 = f32(beta2),
          .take2 = f32(1 - beta2),
          .decay = f32(1 - lr * f32(args.weight_decay)),
          .size = f32(lr / (1 - std::pow(beta1, args.step))),
          .scale = f32(1 / std::sqrt(1 - std::pow(beta2, args.step))),
          .eps = f32(args.eps)};
}

}  // namespace assay
