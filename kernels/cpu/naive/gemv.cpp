// y = A·x on the CPU, in plain loops.
#include "ops/gemv.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_gemv {
namespace {

using ops::GemvArgs;

/// y[i] = sum_p a[i,p] * x[p]
///   a (m,k): row-major, of S, any leading dimension; x (k), y (m): any stride. y shares no memory with a or x.
/// One sum over p in ascending order. Error at most k·u·sum_p |a[i,p]||x[p]|, and half a unit of S. Cost
/// 2mk flops.
template <class S>
void naive(const GemvArgs& args, Device&) {
  const auto a = args.a.as<const S>(), x = args.x.as<const S>();
  const auto y = args.y.as<S>();
  for (Index i = 0; i < args.m; ++i) {
    float sum = 0.0F;
    for (Index p = 0; p < args.k; ++p) sum += widen(a(i, p)) * widen(x(p));
    y(i) = narrow<S>(sum);
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "two loops, one sum per row",
                             .run = &run_typed<GemvArgs, &naive<S>>,
                             .priority = -1});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "gemv/cpu/naive"),
                                            add<Half>(DType::f16, "gemv/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "gemv/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_gemv
