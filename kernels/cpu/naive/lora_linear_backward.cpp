// Gradients of a linear layer with a low-rank adapter on the CPU, in plain loops.
#include "ops/lora_linear_backward.hpp"

#include <algorithm>
#include <vector>

#include "kernels/lora.hpp"
#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_lora_linear_backward {
namespace {

using ops::LoraLinearBackwardArgs;

/// Goes row by row: g = alpha / r dy · B, the row of dx in float32, rounded once, and the row's terms of dA and dB.
/// Inner loops run along rows; sums over rows ascend.
template <class S>
void naive(const LoraLinearBackwardArgs& args, Device&) {
  const auto x = args.x.as<const S>(), weight = args.weight.as<const S>(), dy = args.dy.as<const S>();
  const auto dx = args.dx.as<S>();
  const float scale = lora_scale(args.alpha, args.r);
  for (Index q = 0; q < args.r; ++q)
    for (Index p = 0; p < args.in; ++p) args.da(q, p) = 0.0F;
  for (Index o = 0; o < args.out; ++o)
    for (Index q = 0; q < args.r; ++q) args.db(o, q) = 0.0F;
  std::vector<float> g(static_cast<std::size_t>(args.r)), row(static_cast<std::size_t>(args.in));
  for (Index i = 0; i < args.s; ++i) {
    std::ranges::fill(g, 0.0F);
    std::ranges::fill(row, 0.0F);
    for (Index o = 0; o < args.out; ++o) {
      const float upstream = widen(dy(i, o)), scaled = scale * upstream;
      for (Index q = 0; q < args.r; ++q) {
        g[static_cast<std::size_t>(q)] += scaled * args.b(o, q);
        args.db(o, q) += scaled * args.t(i, q);
      }
      for (Index p = 0; p < args.in; ++p) row[static_cast<std::size_t>(p)] += upstream * widen(weight(o, p));
    }
    for (Index q = 0; q < args.r; ++q)
      for (Index p = 0; p < args.in; ++p) {
        row[static_cast<std::size_t>(p)] += g[static_cast<std::size_t>(q)] * args.a(q, p);
        args.da(q, p) += g[static_cast<std::size_t>(q)] * widen(x(i, p));
      }
    for (Index p = 0; p < args.in; ++p) dx(i, p) = narrow<S>(row[static_cast<std::size_t>(p)]);
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "loops, one row after another",
                             .run = &run_typed<LoraLinearBackwardArgs, &naive<S>>,
                             .priority = -1});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "lora_linear_backward/cpu/naive"),
                                            add<Half>(DType::f16, "lora_linear_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "lora_linear_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_lora_linear_backward
