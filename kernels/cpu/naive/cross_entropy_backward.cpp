// Gradient of the weighted cross-entropy on the CPU, in plain loops.
#include "ops/cross_entropy_backward.hpp"

#include <cmath>

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_cross_entropy_backward {
namespace {

using ops::CrossEntropyBackwardArgs;

/// dlogits[i,j] = weights[y] (exp(logits[i,j] - logsumexp[i]) - [j = y]) (dloss[i] + dtotal / normalizer), y =
/// targets[i]; dlogits shares no memory with an input and may have another leading dimension than logits. One pass.
template <class S>
void naive(const CrossEntropyBackwardArgs& args, Device&) {
  const View<const S> logits = args.logits.as<const S>();
  const View<S> dlogits = args.dlogits.as<S>();
  const float share = args.dtotal(0) / args.normalizer(0);
  for (Index i = 0; i < args.rows; ++i) {
    const Index y = args.targets(i);
    const float scale = args.weights(y) * (args.dloss(i) + share);
    for (Index j = 0; j < args.classes; ++j) {
      const float p = std::exp(widen(logits(i, j)) - args.logsumexp(i));
      dlogits(i, j) = narrow<S>((j == y ? p - 1.0F : p) * scale);
    }
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "one loop", .run = &run_typed<CrossEntropyBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "cross_entropy_backward/cpu/naive"),
                                            add<Half>(DType::f16, "cross_entropy_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "cross_entropy_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_cross_entropy_backward
