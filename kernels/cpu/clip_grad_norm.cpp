// Clipping of gradients by their global norm on the CPU.
#include "ops/clip_grad_norm.hpp"

#include <cmath>

#include "kernels/cpu/global_grad_norm.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::ClipGradNormArgs;

/// Returns the factor of g: 1 within the limit, NaN for a NaN norm.
float factor(float norm, double max_norm, double eps) {
  const auto limit = static_cast<float>(max_norm);
  const float divisor = norm + static_cast<float>(eps);
  return divisor <= limit ? 1.0F : limit / divisor;
}

/// norm = sqrt(sum_i g[i]^2), then g[i] *= min(1, max_norm / (norm + eps)); g is not written if the norm is within the limit.
void highway(const ClipGradNormArgs& args, Device&) {
  args.norm(0) = std::sqrt(sum_of_squares(args.g.data(), args.n));
  const float by = factor(args.norm(0), args.max_norm, args.eps);
  if (by != 1.0F) scale_in_place(args.g.data(), args.n, by);
}

const KernelRegistration highway_kernel{{.id = "clip_grad_norm/cpu/highway",
                                         .summary = "eight vector sums, one vector loop, one thread",
                                         .run = &run_typed<ClipGradNormArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu
