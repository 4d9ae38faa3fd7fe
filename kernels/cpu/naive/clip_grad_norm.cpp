// Clipping of gradients by their global norm on the CPU, in plain loops.
#include "ops/clip_grad_norm.hpp"

#include <cmath>

#include "runtime/registry.hpp"

namespace assay::cpu::of_clip_grad_norm {
namespace {

using ops::ClipGradNormArgs;

/// Returns the factor of g: 1 within the limit, NaN for a NaN norm.
float factor(float norm, double max_norm, double eps) {
  const auto limit = static_cast<float>(max_norm);
  const float divisor = norm + static_cast<float>(eps);
  return divisor <= limit ? 1.0F : limit / divisor;
}

/// norm = sqrt(sum_i g[i]^2), then g[i] *= min(1, max_norm / (norm + eps)); g is not written if the norm is within the limit.
void naive(const ClipGradNormArgs& args, Device&) {
  float sum = 0;
  for (Index i = 0; i < args.n; ++i) sum += args.g(i) * args.g(i);
  args.norm(0) = std::sqrt(sum);
  const float by = factor(args.norm(0), args.max_norm, args.eps);
  if (by == 1.0F) return;
  for (Index i = 0; i < args.n; ++i) args.g(i) *= by;
}

const KernelRegistration naive_kernel{{.id = "clip_grad_norm/cpu/naive",
                                       .summary = "one sum, terms in order; one loop",
                                       .run = &run_typed<ClipGradNormArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_clip_grad_norm
