// y = x sigmoid(x) on the CPU, in plain loops.
#include "ops/silu.hpp"

#include <cmath>

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_silu {
namespace {

using ops::SiluArgs;

/// y[i,j] = x[i,j] / (1 + exp(-x[i,j]))
///   x, y (m,n): row-major, of S, any leading dimension; they share no memory.
/// An exp and three roundings an element; 0 below -88.7, where exp overflows. Cost 8 m n bytes.
template <class S>
void naive(const SiluArgs& args, Device&) {
  const View<const S> x = args.x.as<const S>();
  const View<S> y = args.y.as<S>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) y(i, j) = narrow<S>(widen(x(i, j)) / (1.0F + std::exp(-widen(x(i, j)))));
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "two loops", .run = &run_typed<SiluArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "silu/cpu/naive"),
                                            add<Half>(DType::f16, "silu/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "silu/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_silu
