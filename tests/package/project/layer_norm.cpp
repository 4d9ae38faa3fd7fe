// The kernel under test: two passes for the statistics, one for the elements.
#include "ops/layer_norm.hpp"

#include <cmath>

#include "runtime/registry.hpp"

namespace {

using assay::Index;
using assay::ops::LayerNormArgs;

void two_pass(const LayerNormArgs& args, assay::Device&) {
  const float n = static_cast<float>(args.n);
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0, squares = 0;
    for (Index j = 0; j < args.n; ++j) sum += args.x(i, j);
    const float mean = sum / n;
    for (Index j = 0; j < args.n; ++j) squares += (args.x(i, j) - mean) * (args.x(i, j) - mean);
    const float rstd = 1.0F / std::sqrt(squares / n + static_cast<float>(args.eps));
    for (Index j = 0; j < args.n; ++j) args.y(i, j) = (args.x(i, j) - mean) * rstd * args.weight(j) + args.bias(j);
  }
}

const assay::KernelRegistration registration({.id = "layer_norm/cpu/two_pass",
                                              .summary = "mean, then variance, then elements",
                                              .run = &assay::run_typed<LayerNormArgs, &two_pass>});

}  // namespace
