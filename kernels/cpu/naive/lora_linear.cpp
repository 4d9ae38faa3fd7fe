// A linear layer with a low-rank adapter on the CPU, in plain loops.
#include "ops/lora_linear.hpp"

#include "kernels/lora.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_lora_linear {
namespace {

using ops::LoraLinearArgs;

/// Computes t, then y: the sum over in, the bias, then the scaled sum over the ranks, each in ascending order.
void naive(const LoraLinearArgs& args, Device&) {
  const float scale = lora_scale(args.alpha, args.r);
  for (Index i = 0; i < args.s; ++i) {
    for (Index q = 0; q < args.r; ++q) {
      float sum = 0.0F;
      for (Index p = 0; p < args.in; ++p) sum += args.x(i, p) * args.a(q, p);
      args.t(i, q) = sum;
    }
    for (Index o = 0; o < args.out; ++o) {
      float layer = 0.0F, adapter = 0.0F;
      for (Index p = 0; p < args.in; ++p) layer += args.x(i, p) * args.weight(o, p);
      if (args.biases > 0) layer += args.bias(0, o);
      for (Index q = 0; q < args.r; ++q) adapter += args.t(i, q) * args.b(o, q);
      args.y(i, o) = layer + scale * adapter;
    }
  }
}

const KernelRegistration naive_kernel{{.id = "lora_linear/cpu/naive",
                                       .summary = "three loops for t, five for y",
                                       .run = &run_typed<LoraLinearArgs, &naive>,
                                       .priority = -1}};

}  // namespace
}  // namespace assay::cpu::of_lora_linear
