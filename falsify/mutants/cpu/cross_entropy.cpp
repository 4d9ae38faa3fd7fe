// Wrong cross-entropies and gradients of them.
#include "ops/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "ops/cross_entropy_backward.hpp"

namespace assay::mutants::cross_entropy_mutants {
namespace {

enum class Fault {
  last_class_dropped,
  no_maximum,
  maximum_without_last,
  clamp,
  hundred,
  mean_over_rows,
  sum_for_mean,
  weights_ignored,
  target_off_by_one,
  saved_without_maximum,
  padded_to_four,
  cancels
};

template <Fault F>
void mutant(const ops::CrossEntropyArgs& args, Device&) {
  float losses = 0, weight = 0;
  for (Index i = 0; i < args.rows; ++i) {
    float m = args.logits(i, 0);
    const Index looked_at = F == Fault::maximum_without_last ? std::max<Index>(args.classes - 1, 1) : args.classes;
    for (Index j = 1; j < looked_at; ++j) m = std::max(m, args.logits(i, j));
    if (F == Fault::no_maximum) m = 0;
    if (F == Fault::padded_to_four && args.classes % 4 != 0) m = std::max(m, 0.0F);
    float sum = 0;
    const Index summed = F == Fault::last_class_dropped && args.classes > 1 ? args.classes - 1 : args.classes;
    for (Index j = 0; j < summed; ++j) sum += std::exp(args.logits(i, j) - m);
    if (F == Fault::padded_to_four && args.classes % 4 != 0)
      sum += static_cast<float>(4 - args.classes % 4) * std::exp(0.0F - m);
    const Index y = F == Fault::target_off_by_one ? (args.targets(i) + 1) % args.classes : args.targets(i);
    const float log_sum = std::log(sum), w = F == Fault::weights_ignored ? 1.0F : args.weights(y);
    float loss = (m - args.logits(i, y)) + log_sum;
    if (F == Fault::cancels) loss = (m + log_sum) - args.logits(i, y);
    if (F == Fault::clamp) loss = -std::log(std::max(std::exp(args.logits(i, y) - m) / sum, 1e-10F));
    if (F == Fault::hundred && !std::isfinite(loss)) loss = 100;
    args.logsumexp(i) = F == Fault::saved_without_maximum ? log_sum : m + log_sum;
    args.loss(i) = w * loss;
    losses += args.loss(i);
    weight += w;
  }
  if (F == Fault::mean_over_rows) weight = static_cast<float>(args.rows);
  const bool mean = args.reduction == 1 && F != Fault::sum_for_mean;
  args.normalizer(0) = args.reduction == 1 ? weight : 1.0F;
  args.total(0) = mean ? losses / weight : losses;
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::CrossEntropyArgs, &mutant<F>>("cross_entropy", id, fault);
}

enum class Backward {
  onehot_missing,
  weight_ignored,
  normalizer_ignored,
  dloss_ignored,
  dtotal_ignored,
  accumulates,
  divided_by_rows,
  last_class_unwritten,
  target_off_by_one,
  no_maximum
};

template <Backward F>
void backward(const ops::CrossEntropyBackwardArgs& args, Device&) {
  const float normalizer = F == Backward::normalizer_ignored ? 1.0F
                           : F == Backward::divided_by_rows  ? static_cast<float>(args.rows)
                                                             : args.normalizer(0);
  const float share = F == Backward::dtotal_ignored ? 0.0F : args.dtotal(0) / normalizer;
  for (Index i = 0; i < args.rows; ++i) {
    const Index y = F == Backward::target_off_by_one ? (args.targets(i) + 1) % args.classes : args.targets(i);
    const float w = F == Backward::weight_ignored ? 1.0F : args.weights(args.targets(i));
    const float scale = w * ((F == Backward::dloss_ignored ? 0.0F : args.dloss(i)) + share);
    const Index n = F == Backward::last_class_unwritten && args.classes > 1 ? args.classes - 1 : args.classes;
    for (Index j = 0; j < n; ++j) {
      const float p = F == Backward::no_maximum ? std::exp(args.logits(i, j)) / std::exp(args.logsumexp(i))
                                                : std::exp(args.logits(i, j) - args.logsumexp(i));
      const float g = (j == y && F != Backward::onehot_missing ? p - 1 : p) * scale;
      args.dlogits(i, j) = F == Backward::accumulates ? args.dlogits(i, j) + g : g;
    }
  }
}

template <Backward F>
KernelRegistration add_backward(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::CrossEntropyBackwardArgs, &backward<F>>("cross_entropy_backward", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::last_class_dropped>("mutant/cpu/cross_entropy/last_class_dropped",
                                   "the sum leaves out the last class (NUMERICS 1.3)"),
    add<Fault::no_maximum>("mutant/cpu/cross_entropy/no_maximum", "exp of the logits themselves: overflows from 89 on"),
    add<Fault::maximum_without_last>("mutant/cpu/cross_entropy/maximum_without_last",
                                     "the maximum is taken without the last class"),
    add<Fault::clamp>("mutant/cpu/cross_entropy/clamp", "max(p, 1e-10) before the logarithm (SYSTEMS S5)"),
    add<Fault::hundred>("mutant/cpu/cross_entropy/hundred", "100 where the loss is not finite (SYSTEMS S5)"),
    add<Fault::mean_over_rows>("mutant/cpu/cross_entropy/mean_over_rows", "the weighted mean divides by rows (bug 58)"),
    add<Fault::sum_for_mean>("mutant/cpu/cross_entropy/sum_for_mean", "the sum where the mean is asked for (bug 71)"),
    add<Fault::weights_ignored>("mutant/cpu/cross_entropy/weights_ignored", "every class weighs 1"),
    add<Fault::target_off_by_one>("mutant/cpu/cross_entropy/target_off_by_one", "targets counted from 1"),
    add<Fault::saved_without_maximum>("mutant/cpu/cross_entropy/saved_without_maximum",
                                      "logsumexp saved without the maximum"),
    add<Fault::padded_to_four>("mutant/cpu/cross_entropy/padded_to_four",
                               "lanes past the last class count as logits of 0"),
    add<Fault::cancels>("mutant/cpu/cross_entropy/cancels",
                        "logsumexp - logits[y]: a confident loss is lost in rounding"),
    add_backward<Backward::onehot_missing>("mutant/cpu/cross_entropy_backward/onehot_missing",
                                           "p where p - onehot is due"),
    add_backward<Backward::weight_ignored>("mutant/cpu/cross_entropy_backward/weight_ignored", "every class weighs 1"),
    add_backward<Backward::normalizer_ignored>("mutant/cpu/cross_entropy_backward/normalizer_ignored",
                                               "the gradient of the sum for the mean's (bug 71)"),
    add_backward<Backward::dloss_ignored>("mutant/cpu/cross_entropy_backward/dloss_ignored",
                                          "the gradient of the losses of rows is not used"),
    add_backward<Backward::dtotal_ignored>("mutant/cpu/cross_entropy_backward/dtotal_ignored",
                                           "the gradient of total is not used"),
    add_backward<Backward::accumulates>("mutant/cpu/cross_entropy_backward/accumulates",
                                        "adds to what dlogits held (bug 23)"),
    add_backward<Backward::divided_by_rows>("mutant/cpu/cross_entropy_backward/divided_by_rows",
                                            "divided by rows, not by the weights (bug 58)"),
    add_backward<Backward::last_class_unwritten>("mutant/cpu/cross_entropy_backward/last_class_unwritten",
                                                 "the last class gets no gradient"),
    add_backward<Backward::target_off_by_one>("mutant/cpu/cross_entropy_backward/target_off_by_one",
                                              "1 subtracted at the next class"),
    add_backward<Backward::no_maximum>("mutant/cpu/cross_entropy_backward/no_maximum",
                                       "exp(x) / exp(logsumexp): overflows from 89 on"),
};

}  // namespace
}  // namespace assay::mutants::cross_entropy_mutants
