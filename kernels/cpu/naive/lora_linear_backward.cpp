// Gradients of a linear layer with a low-rank adapter on the CPU, in plain loops.
#include "ops/lora_linear_backward.hpp"

#include <algorithm>
#include <vector>

#include "kernels/lora.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_lora_linear_backward {
namespace {

using ops::LoraLinearBackwardArgs;

/// Goes row by row: g = alpha / r dy · B, its use in dx and dA, and the row's terms of dB. Inner loops run along rows;
/// sums over rows ascend.
void naive(const LoraLinearBackwardArgs& args, Device&) {
  const float scale = lora_scale(args.alpha, args.r);
  for (Index q = 0; q < args.r; ++q)
    for (Index p = 0; p < args.in; ++p) args.da(q, p) = 0.0F;
  for (Index o = 0; o < args.out; ++o)
    for (Index q = 0; q < args.r; ++q) args.db(o, q) = 0.0F;
  std::vector<float> g(static_cast<std::size_t>(args.r));
  for (Index i = 0; i < args.s; ++i) {
    std::ranges::fill(g, 0.0F);
    for (Index p = 0; p < args.in; ++p) args.dx(i, p) = 0.0F;
    for (Index o = 0; o < args.out; ++o) {
      const float dy = args.dy(i, o), scaled = scale * dy;
      for (Index q = 0; q < args.r; ++q) {
        g[static_cast<std::size_t>(q)] += scaled * args.b(o, q);
        args.db(o, q) += scaled * args.t(i, q);
      }
      for (Index p = 0; p < args.in; ++p) args.dx(i, p) += dy * args.weight(o, p);
    }
    for (Index q = 0; q < args.r; ++q)
      for (Index p = 0; p < args.in; ++p) {
        args.dx(i, p) += g[static_cast<std::size_t>(q)] * args.a(q, p);
        args.da(q, p) += g[static_cast<std::size_t>(q)] * args.x(i, p);
      }
  }
}

const KernelRegistration naive_kernel{{.id = "lora_linear_backward/cpu/naive",
                                       .summary = "loops, one row after another",
                                       .run = &run_typed<LoraLinearBackwardArgs, &naive>,
                                       .priority = -1}};

}  // namespace
}  // namespace assay::cpu::of_lora_linear_backward
