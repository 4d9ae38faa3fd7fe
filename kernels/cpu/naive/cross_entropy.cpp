// Weighted cross-entropy on the CPU, in plain loops.
#include "ops/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_cross_entropy {
namespace {

using ops::CrossEntropyArgs;

/// loss[i] = weights[y] ((m - logits[i,y]) + log sum_j exp(logits[i,j] - m)), y = targets[i]; also writes logsumexp[i],
/// and total = sum_i loss[i] / normalizer. logits (rows, classes): any leading dimension. No output shares memory with
/// an input. Error: the contract's bound. Cost: three passes over each row.
template <class S>
void naive(const CrossEntropyArgs& args, Device&) {
  const View<const S> logits = args.logits.as<const S>();
  float sum = 0, weight = 0;
  for (Index i = 0; i < args.rows; ++i) {
    float largest = widen(logits(i, 0)), powers = 0;
    for (Index j = 1; j < args.classes; ++j) largest = std::max(largest, widen(logits(i, j)));
    for (Index j = 0; j < args.classes; ++j) powers += std::exp(widen(logits(i, j)) - largest);
    const float log_sum = std::log(powers);
    const Index y = args.targets(i);
    args.logsumexp(i) = largest + log_sum;
    args.loss(i) = args.weights(y) * ((largest - widen(logits(i, y))) + log_sum);
    sum += args.loss(i);
    weight += args.weights(y);
  }
  const bool mean = args.reduction == 1;
  args.normalizer(0) = mean ? weight : 1.0F;
  args.total(0) = mean ? sum / weight : sum;
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "one sum per row, terms in order",
                             .run = &run_typed<CrossEntropyArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "cross_entropy/cpu/naive"),
                                            add<Half>(DType::f16, "cross_entropy/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "cross_entropy/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_cross_entropy
