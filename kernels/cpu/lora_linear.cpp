// A linear layer with a low-rank adapter on the CPU.
#include "kernels/cpu/affine_product.hpp"
#include "kernels/lora.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::LoraLinearArgs;

/// t first, then y: the sum over in, the bias, the scaled sum over the ranks, each in ascending order.
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

std::optional<std::string> refusal(const LoraLinearArgs& args) {
  return openblas_refuses(args.x, args.weight, args.a, args.b, args.y, args.t);
}

const KernelRegistration naive_kernel{{.op = "lora_linear",
                                       .id = "lora_linear/cpu/naive",
                                       .source = "kernels/cpu/lora_linear.cpp",
                                       .summary = "three loops for t, five for y",
                                       .run = &run_typed<LoraLinearArgs, &naive>,
                                       .priority = -1}};
const KernelRegistration openblas_kernel{{.op = "lora_linear",
                                          .id = "lora_linear/cpu/openblas",
                                          .batch_invariant = false,
                                          .source = "kernels/lora.hpp",
                                          .summary = kOpenblas,
                                          .run = &run_typed<LoraLinearArgs, &lora_linear_by<&multiply_openblas>>,
                                          .refuse = &refuse_typed<LoraLinearArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.op = "lora_linear",
                                       .id = "lora_linear/cpu/highway_tiled",
                                       .source = "kernels/lora.hpp",
                                       .summary = kHighwayTiled,
                                       .run = &run_typed<LoraLinearArgs, &lora_linear_by<&multiply_tiled>>}};
const KernelRegistration dispatch_kernel{{.op = "lora_linear",
                                          .id = "lora_linear/cpu/dispatch",
                                          .batch_invariant = false,
                                          .source = "kernels/lora.hpp",
                                          .summary = kDispatch,
                                          .run = &run_typed<LoraLinearArgs, &lora_linear_by<&multiply_dispatch>>,
                                          .priority = 1}};

}  // namespace
}  // namespace assay::cpu
