// y = x + bias on the CPU, in plain loops.
#include "ops/bias_add.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_bias_add {
namespace {

using ops::BiasAddArgs;

/// y[i,j] = x[i,j] + bias[j]
///   x, y (m,n): row-major, of S, any leading dimension; bias (n); y shares no memory with x or bias.
/// One rounding an element. Cost 8 m n bytes.
template <class S>
void naive(const BiasAddArgs& args, Device&) {
  const View<const S> x = args.x.as<const S>();
  const View<S> y = args.y.as<S>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) y(i, j) = narrow<S>(widen(x(i, j)) + args.bias(j));
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "two loops", .run = &run_typed<BiasAddArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "bias_add/cpu/naive"),
                                            add<Half>(DType::f16, "bias_add/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "bias_add/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_bias_add
