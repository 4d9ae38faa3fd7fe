// Wrong binary cross-entropies and gradients of them.
#include "ops/bce_with_logits.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "ops/bce_with_logits_backward.hpp"

namespace assay::mutants::bce_with_logits_mutants {
namespace {

enum class Fault {
  log_of_sigmoid,
  plain_log,
  hard_targets_weighted,
  weight_on_both,
  weight_ignored,
  sum_for_mean,
  last_class_dropped,
  clamp,
  hard_targets
};

float softplus(float z) { return std::max(z, 0.0F) + std::log1p(std::exp(-std::fabs(z))); }

template <Fault F>
void mutant(const ops::BceWithLogitsArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0;
    const Index n = F == Fault::last_class_dropped && args.classes > 1 ? args.classes - 1 : args.classes;
    for (Index j = 0; j < n; ++j) {
      const float x = F == Fault::clamp ? std::clamp(args.logits(i, j), -30.0F, 30.0F) : args.logits(i, j);
      float t = args.targets(i, j), w = args.pos_weight(j);
      if (F == Fault::hard_targets) t = t >= 0.5F ? 1.0F : 0.0F;
      if (F == Fault::weight_ignored || (F == Fault::hard_targets_weighted && t != 1)) w = 1;
      const float rest = F == Fault::weight_on_both ? w : 1.0F;
      float positive = softplus(-x), negative = softplus(x);
      if (F == Fault::log_of_sigmoid) {
        const float s = 1 / (1 + std::exp(-x));
        positive = -std::log(s), negative = -std::log(1 - s);
      }
      if (F == Fault::plain_log) {
        positive = std::max(-x, 0.0F) + std::log(1 + std::exp(-std::fabs(x)));
        negative = std::max(x, 0.0F) + std::log(1 + std::exp(-std::fabs(x)));
      }
      sum += w * t * positive + rest * (1 - t) * negative;
    }
    args.loss(i) = F == Fault::sum_for_mean ? sum : sum / static_cast<float>(args.classes);
  }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::BceWithLogitsArgs, &mutant<F>>("bce_with_logits", id, fault);
}

enum class Backward {
  sum_for_mean,
  hard_targets_weighted,
  weight_ignored,
  accumulates,
  upstream_ignored,
  positive_dropped,
  exp_overflows
};

template <Backward F>
void backward(const ops::BceWithLogitsBackwardArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i)
    for (Index j = 0; j < args.classes; ++j) {
      const float x = args.logits(i, j), t = args.targets(i, j);
      float w = args.pos_weight(j), s = 1 / (1 + std::exp(-x)), rest = 1 / (1 + std::exp(x));
      if (F == Backward::exp_overflows) s = std::exp(x) / (1 + std::exp(x));
      if (F == Backward::weight_ignored || (F == Backward::hard_targets_weighted && t != 1)) w = 1;
      if (F == Backward::positive_dropped) rest = 0;
      const float upstream = F == Backward::upstream_ignored ? 1.0F : args.dloss(i);
      const float share = F == Backward::sum_for_mean ? upstream : upstream / static_cast<float>(args.classes);
      const float g = ((1 - t) * s - w * t * rest) * share;
      args.dlogits(i, j) = F == Backward::accumulates ? args.dlogits(i, j) + g : g;
    }
}

template <Backward F>
KernelRegistration add_backward(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::BceWithLogitsBackwardArgs, &backward<F>>("bce_with_logits_backward", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::log_of_sigmoid>("mutant/cpu/bce_with_logits/log_of_sigmoid",
                               "log(sigmoid(x)) and log(1 - sigmoid(x)): infinite from 17 on"),
    add<Fault::plain_log>("mutant/cpu/bce_with_logits/plain_log",
                          "log(1 + z) for log1p(z): a small loss is lost in rounding"),
    add<Fault::hard_targets_weighted>("mutant/cpu/bce_with_logits/hard_targets_weighted",
                                      "pos_weight where t = 1 only (bug 60)"),
    add<Fault::hard_targets>("mutant/cpu/bce_with_logits/hard_targets", "soft labels rounded to 0 or 1"),
    add<Fault::weight_on_both>("mutant/cpu/bce_with_logits/weight_on_both",
                               "pos_weight multiplies the negative part too"),
    add<Fault::weight_ignored>("mutant/cpu/bce_with_logits/weight_ignored", "pos_weight taken as 1"),
    add<Fault::sum_for_mean>("mutant/cpu/bce_with_logits/sum_for_mean", "the sum over classes for their mean (bug 71)"),
    add<Fault::last_class_dropped>("mutant/cpu/bce_with_logits/last_class_dropped", "the last label is left out"),
    add<Fault::clamp>("mutant/cpu/bce_with_logits/clamp", "logits clamped to +-30"),
    add_backward<Backward::sum_for_mean>("mutant/cpu/bce_with_logits_backward/sum_for_mean",
                                         "not divided by classes (bug 71)"),
    add_backward<Backward::hard_targets_weighted>("mutant/cpu/bce_with_logits_backward/hard_targets_weighted",
                                                  "pos_weight where t = 1 only (bug 60)"),
    add_backward<Backward::weight_ignored>("mutant/cpu/bce_with_logits_backward/weight_ignored",
                                           "pos_weight taken as 1"),
    add_backward<Backward::accumulates>("mutant/cpu/bce_with_logits_backward/accumulates",
                                        "adds to what dlogits held (bug 23)"),
    add_backward<Backward::upstream_ignored>("mutant/cpu/bce_with_logits_backward/upstream_ignored",
                                             "dloss taken as 1"),
    add_backward<Backward::positive_dropped>("mutant/cpu/bce_with_logits_backward/positive_dropped",
                                             "the positive part has no gradient"),
    add_backward<Backward::exp_overflows>("mutant/cpu/bce_with_logits_backward/exp_overflows",
                                          "exp(x) / (1 + exp(x)): NaN from 89 on"),
};

}  // namespace
}  // namespace assay::mutants::bce_with_logits_mutants
