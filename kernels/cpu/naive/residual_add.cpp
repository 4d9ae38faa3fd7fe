// y = x + alpha r on the CPU, in plain loops.
#include "ops/residual_add.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_residual_add {
namespace {

using ops::ResidualAddArgs;

/// y[i,j] = x[i,j] + alpha r[i,j]
///   x, r, y (m,n): row-major, of S, any leading dimension; y shares no memory with x or r.
/// Two roundings an element, or one if fused. Cost 12 m n bytes.
template <class S>
void naive(const ResidualAddArgs& args, Device&) {
  const View<const S> x = args.x.as<const S>(), r = args.r.as<const S>();
  const View<S> y = args.y.as<S>();
  const auto alpha = static_cast<float>(args.alpha);
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) y(i, j) = narrow<S>(widen(x(i, j)) + alpha * widen(r(i, j)));
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "two loops", .run = &run_typed<ResidualAddArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "residual_add/cpu/naive"),
                                            add<Half>(DType::f16, "residual_add/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "residual_add/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_residual_add
