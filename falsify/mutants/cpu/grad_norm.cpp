// Wrong norms of gradients, and clipping by them.
#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"
#include "ops/clip_grad_norm.hpp"
#include "ops/global_grad_norm.hpp"

namespace assay::mutants::grad_norm_mutants {
namespace {

enum class Fault { squared, last_dropped, absolute_sum, root_mean_square, f16_sum, nan_skipped, accumulates, largest };

template <Fault F>
void norm(const ops::GlobalGradNormArgs& args, Device&) {
  float sum = F == Fault::accumulates ? args.norm(0) : 0.0F;
  const Index n = F == Fault::last_dropped && args.n > 1 ? args.n - 1 : args.n;
  for (Index i = 0; i < n; ++i) {
    const float x = args.g(i);
    if (F == Fault::nan_skipped && std::isnan(x)) continue;
    if (F == Fault::largest) sum = std::max(sum, x * x);
    else sum += F == Fault::absolute_sum ? std::fabs(x) : x * x;
    if (F == Fault::f16_sum) sum = rounded(sum, 11);
  }
  if (F == Fault::root_mean_square && args.n > 0) sum /= static_cast<float>(args.n);
  args.norm(0) = F == Fault::squared || F == Fault::absolute_sum ? sum : std::sqrt(sum);
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::GlobalGradNormArgs, &norm<F>>("global_grad_norm", id, fault);
}

enum class Clip {
  squared,
  per_block,
  discarded,
  no_clip,
  norm_after,
  scales_up,
  eps_added,
  by_value,
  hard_coded,
  nan_kept
};

template <Clip F>
void clip(const ops::ClipGradNormArgs& args, Device&) {
  const auto limit = F == Clip::hard_coded ? 1.0F : static_cast<float>(args.max_norm);
  const auto squares = [&](Index from, Index to) {
    float sum = 0;
    for (Index i = from; i < to; ++i) sum += args.g(i) * args.g(i);
    return sum;
  };
  const float length = std::sqrt(squares(0, args.n));
  const Index block = F == Clip::per_block ? 64 : std::max<Index>(args.n, 1);
  if (F != Clip::no_clip && F != Clip::discarded)
    for (Index from = 0; from < args.n; from += block) {
      const Index to = std::min(from + block, args.n);
      const float own = F == Clip::squared     ? length * length
                        : F == Clip::per_block ? std::sqrt(squares(from, to))
                                               : length;
      const float below = F == Clip::eps_added ? own + 1e-6F : own;
      const bool keeps = F == Clip::nan_kept ? !(own > limit) : own <= limit;
      const float by = keeps && F != Clip::scales_up ? 1.0F : limit / below;
      for (Index i = from; i < to; ++i) {
        if (F == Clip::by_value) args.g(i) = std::clamp(args.g(i), -limit, limit);
        else args.g(i) *= by;
      }
    }
  args.norm(0) = F == Clip::norm_after ? std::sqrt(squares(0, args.n)) : F == Clip::no_clip ? 0.0F : length;
}

template <Clip F>
KernelRegistration add_clip(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::ClipGradNormArgs, &clip<F>>("clip_grad_norm", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::squared>("mutant/cpu/global_grad_norm/squared", "no root (bug 61)"),
    add<Fault::last_dropped>("mutant/cpu/global_grad_norm/last_dropped", "i < n - 1"),
    add<Fault::absolute_sum>("mutant/cpu/global_grad_norm/absolute_sum", "the sum of magnitudes"),
    add<Fault::root_mean_square>("mutant/cpu/global_grad_norm/root_mean_square", "divided by n"),
    add<Fault::f16_sum>("mutant/cpu/global_grad_norm/f16_sum", "the sum held with 11 bits"),
    add<Fault::nan_skipped>("mutant/cpu/global_grad_norm/nan_skipped", "NaN left out"),
    add<Fault::accumulates>("mutant/cpu/global_grad_norm/accumulates", "starts from what norm held (bug 23)"),
    add<Fault::largest>("mutant/cpu/global_grad_norm/largest", "the largest magnitude"),
    add_clip<Clip::squared>("mutant/cpu/clip_grad_norm/squared", "clips by the square of the norm (bug 61)"),
    add_clip<Clip::per_block>("mutant/cpu/clip_grad_norm/per_block", "clips each block by its own norm (bug 62)"),
    add_clip<Clip::discarded>("mutant/cpu/clip_grad_norm/discarded", "the factor is computed and not used (bug 63)"),
    add_clip<Clip::no_clip>("mutant/cpu/clip_grad_norm/no_clip", "nothing is done, and 0 reported (bug 64)"),
    add_clip<Clip::norm_after>("mutant/cpu/clip_grad_norm/norm_after", "the norm after clipping is reported"),
    add_clip<Clip::scales_up>("mutant/cpu/clip_grad_norm/scales_up", "gradients within the limit are scaled up to it"),
    add_clip<Clip::eps_added>("mutant/cpu/clip_grad_norm/eps_added", "max_norm / (norm + 1e-6)"),
    add_clip<Clip::by_value>("mutant/cpu/clip_grad_norm/by_value", "each element clamped to the limit"),
    add_clip<Clip::hard_coded>("mutant/cpu/clip_grad_norm/hard_coded", "max_norm = 1 whatever is given"),
    add_clip<Clip::nan_kept>("mutant/cpu/clip_grad_norm/nan_kept", "a NaN norm leaves the gradient as it is"),
};

}  // namespace
}  // namespace assay::mutants::grad_norm_mutants
