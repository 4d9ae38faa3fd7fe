// Weighted cross-entropy and the gradient of its total on the CPU, in plain loops.
#include "ops/cross_entropy_with_gradient.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_cross_entropy_with_gradient {
namespace {

using ops::CrossEntropyWithGradientArgs;

/// loss[i] = weights[y] ((m - logits[i,y]) + log sum_j exp(logits[i,j] - m)), y = targets[i], logsumexp[i], and total =
/// sum_i loss[i] / normalizer, with gradient[i,j] = weights[y] (exp(logits[i,j] - m) / sum_k exp(logits[i,k] - m) - [j =
/// y]) / normalizer. logits, gradient (rows, classes): any leading dimensions. No output shares memory with an input.
/// Error: the contract's bound. Cost: three passes over each row.
template <class S>
void naive(const CrossEntropyWithGradientArgs& args, Device&) {
  const View<const S> logits = args.logits.as<const S>();
  const View<S> gradient = args.gradient.as<S>();
  float sum = 0, weight = 0;
  for (Index i = 0; i < args.rows; ++i) weight += args.weights(args.targets(i));
  const float normalizer = args.reduction == 1 ? weight : 1.0F;
  for (Index i = 0; i < args.rows; ++i) {
    float largest = widen(logits(i, 0)), powers = 0;
    for (Index j = 1; j < args.classes; ++j) largest = std::max(largest, widen(logits(i, j)));
    for (Index j = 0; j < args.classes; ++j) powers += std::exp(widen(logits(i, j)) - largest);
    const float log_sum = std::log(powers);
    const Index y = args.targets(i);
    args.logsumexp(i) = largest + log_sum;
    args.loss(i) = args.weights(y) * ((largest - widen(logits(i, y))) + log_sum);
    sum += args.loss(i);
    const float scale = args.weights(y) / normalizer;
    for (Index j = 0; j < args.classes; ++j) {
      const float p = std::exp(widen(logits(i, j)) - largest) / powers;
      gradient(i, j) = narrow<S>((j == y ? p - 1.0F : p) * scale);
    }
  }
  args.total(0) = sum / normalizer;
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "one sum per row, terms in order, then its gradient",
                             .run = &run_typed<CrossEntropyWithGradientArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "cross_entropy_with_gradient/cpu/naive"),
                                            add<Half>(DType::f16, "cross_entropy_with_gradient/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "cross_entropy_with_gradient/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_cross_entropy_with_gradient
