// y = x · Wᵀ + bias on the CPU, in plain loops.
#include "ops/linear.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_linear {
namespace {

using ops::LinearArgs;

/// Sums over in ascending order and adds the bias last; the sum is rounded once.
template <class S>
void naive(const LinearArgs& args, Device&) {
  const auto x = args.x.as<const S>(), weight = args.weight.as<const S>(), bias = args.bias.as<const S>();
  const auto y = args.y.as<S>();
  for (Index i = 0; i < args.s; ++i)
    for (Index o = 0; o < args.out; ++o) {
      float sum = 0.0F;
      for (Index p = 0; p < args.in; ++p) sum += widen(x(i, p)) * widen(weight(o, p));
      y(i, o) = narrow<S>(args.biases == 0 ? sum : sum + widen(bias(0, o)));
    }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "three loops",
                             .run = &run_typed<LinearArgs, &naive<S>>,
                             .priority = -1});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "linear/cpu/naive"),
                                            add<Half>(DType::f16, "linear/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "linear/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_linear
