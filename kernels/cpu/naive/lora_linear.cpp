// A linear layer with a low-rank adapter on the CPU, in plain loops.
#include "ops/lora_linear.hpp"

#include "kernels/lora.hpp"
#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_lora_linear {
namespace {

using ops::LoraLinearArgs;

/// Computes t, then y: the sum over in, the bias, then the scaled sum over the ranks, each in ascending order; y is
/// rounded once.
template <class S>
void naive(const LoraLinearArgs& args, Device&) {
  const auto x = args.x.as<const S>(), weight = args.weight.as<const S>(), bias = args.bias.as<const S>();
  const auto y = args.y.as<S>();
  const float scale = lora_scale(args.alpha, args.r);
  for (Index i = 0; i < args.s; ++i) {
    for (Index q = 0; q < args.r; ++q) {
      float sum = 0.0F;
      for (Index p = 0; p < args.in; ++p) sum += widen(x(i, p)) * args.a(q, p);
      args.t(i, q) = sum;
    }
    for (Index o = 0; o < args.out; ++o) {
      float layer = 0.0F, adapter = 0.0F;
      for (Index p = 0; p < args.in; ++p) layer += widen(x(i, p)) * widen(weight(o, p));
      if (args.biases > 0) layer += widen(bias(0, o));
      for (Index q = 0; q < args.r; ++q) adapter += args.t(i, q) * args.b(o, q);
      y(i, o) = narrow<S>(layer + scale * adapter);
    }
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "three loops for t, five for y",
                             .run = &run_typed<LoraLinearArgs, &naive<S>>,
                             .priority = -1});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "lora_linear/cpu/naive"),
                                            add<Half>(DType::f16, "lora_linear/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "lora_linear/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_lora_linear
