// The gate of SwiGLU on the CPU, in plain loops.
#include "ops/silu_mul.hpp"

#include <cmath>

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_silu_mul {
namespace {

using ops::SiluMulArgs;

/// y[i,j] = gate[i,j] / (1 + exp(-gate[i,j])) * up[i,j]
///   gate, up, y (rows,n): float32, binary16 or bfloat16, rows dense; y shares no memory with gate or up.
template <class S>
void naive(const SiluMulArgs& args, Device&) {
  const View<const S> gate = args.gate.as<const S>(), up = args.up.as<const S>();
  const View<S> y = args.y.as<S>();
  for (Index i = 0; i < args.rows; ++i)
    for (Index j = 0; j < args.n; ++j) {
      const float g = widen(gate(i, j));
      y(i, j) = narrow<S>(g / (1.0F + std::exp(-g)) * widen(up(i, j)));
    }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "two loops", .run = &run_typed<SiluMulArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "silu_mul/cpu/naive"),
                                            add<Half>(DType::f16, "silu_mul/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "silu_mul/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_silu_mul
