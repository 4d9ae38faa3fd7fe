// Gradients of silu_mul on the CPU, in plain loops.
#include "ops/silu_mul_backward.hpp"

#include <cmath>

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_silu_mul_backward {
namespace {

using ops::SiluMulBackwardArgs;

/// dgate = dy up s (1 + gate (1 - s)), dup = dy gate s, s = 1 / (1 + exp(-gate))
///   all tensors (rows,n): of S, rows dense; dgate and dup share no memory with the inputs or each other.
template <class S>
void naive(const SiluMulBackwardArgs& args, Device&) {
  const View<const S> gate = args.gate.as<const S>(), up = args.up.as<const S>(), upstream = args.dy.as<const S>();
  const View<S> dgate = args.dgate.as<S>(), dup = args.dup.as<S>();
  for (Index i = 0; i < args.rows; ++i)
    for (Index j = 0; j < args.n; ++j) {
      const float g = widen(gate(i, j)), s = 1.0F / (1.0F + std::exp(-g)), dy = widen(upstream(i, j));
      dgate(i, j) = narrow<S>(dy * widen(up(i, j)) * (s * (1.0F + g * (1.0F - s))));
      dup(i, j) = narrow<S>(dy * (g * s));
    }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "two loops", .run = &run_typed<SiluMulBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "silu_mul_backward/cpu/naive"),
                                            add<Half>(DType::f16, "silu_mul_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "silu_mul_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_silu_mul_backward
