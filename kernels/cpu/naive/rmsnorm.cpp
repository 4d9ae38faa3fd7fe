// Root mean square normalization on the CPU, in plain loops.
#include "ops/rmsnorm.hpp"

#include <cmath>

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_rmsnorm {
namespace {

using ops::RmsnormArgs;

/// rrms[i] = 1 / sqrt(sum_j x[i,j]² / n + eps), y[i,j] = x[i,j] rrms[i] weight[j]
///   x, y (rows,n): float32, binary16 or bfloat16, rows dense; weight (n), rrms (rows): float32. y and rrms share no
///   memory with x and weight. One sum per row, j ascending. Cost 4 rows n operations, two passes over x.
template <class S>
void naive(const RmsnormArgs& args, Device&) {
  const View<const S> x = args.x.as<const S>();
  const View<S> y = args.y.as<S>();
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0.0F;
    for (Index j = 0; j < args.n; ++j) sum += widen(x(i, j)) * widen(x(i, j));
    const float rrms = 1.0F / std::sqrt(sum / static_cast<float>(args.n) + static_cast<float>(args.eps));
    args.rrms(i) = rrms;
    for (Index j = 0; j < args.n; ++j) y(i, j) = narrow<S>(widen(x(i, j)) * rrms * args.weight(j));
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "two loops a row", .run = &run_typed<RmsnormArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "rmsnorm/cpu/naive"),
                                            add<Half>(DType::f16, "rmsnorm/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "rmsnorm/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_rmsnorm
