// dx = dy times the derivative of x sigmoid(x) on the CPU, in plain loops.
#include "ops/silu_backward.hpp"

#include <cmath>

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_silu_backward {
namespace {

using ops::SiluBackwardArgs;

/// dx[i,j] = dy[i,j] s (1 + x[i,j] (1 - s)), s = 1 / (1 + exp(-x[i,j]))
///   x, dy, dx (m,n): row-major, of S, any leading dimension; dx shares no memory with x or dy.
/// Cost 12 m n bytes and an exp an element.
template <class S>
void naive(const SiluBackwardArgs& args, Device&) {
  const View<const S> of = args.x.as<const S>(), dy = args.dy.as<const S>();
  const View<S> dx = args.dx.as<S>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      const float x = widen(of(i, j)), s = 1.0F / (1.0F + std::exp(-x));
      dx(i, j) = narrow<S>(widen(dy(i, j)) * (s * (1.0F + x * (1.0F - s))));
    }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "two loops", .run = &run_typed<SiluBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "silu_backward/cpu/naive"),
                                            add<Half>(DType::f16, "silu_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "silu_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_silu_backward
