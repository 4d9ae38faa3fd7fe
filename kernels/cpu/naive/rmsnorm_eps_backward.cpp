// Gradients of rmsnorm from x and eps alone on the CPU, in plain loops.
#include "ops/rmsnorm_eps_backward.hpp"

#include <cmath>

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_rmsnorm_eps_backward {
namespace {

using ops::RmsnormEpsBackwardArgs;

/// With a = dy weight and rrms[i] = 1 / sqrt(sum_j x[i,j]² / n + eps): dx[i,j] = rrms[i] (a[i,j] - x[i,j] rrms[i]² sum_k
/// a[i,k] x[i,k] / n), dweight[j] = sum_i dy[i,j] x[i,j] rrms[i]
///   x, dy, dx (rows,n): of S, rows dense; weight, dweight (n): float32. dx and dweight share no memory with the inputs
///   or each other. Sums ascending. Cost 14 rows n operations, two passes over x and dy.
template <class S>
void naive(const RmsnormEpsBackwardArgs& args, Device&) {
  const View<const S> x = args.x.as<const S>(), dy = args.dy.as<const S>();
  const View<S> dx = args.dx.as<S>();
  const auto n = static_cast<float>(args.n);
  for (Index j = 0; j < args.n; ++j) args.dweight(j) = 0.0F;
  for (Index i = 0; i < args.rows; ++i) {
    float squares = 0.0F, along = 0.0F;
    for (Index j = 0; j < args.n; ++j) {
      squares += widen(x(i, j)) * widen(x(i, j));
      along += widen(dy(i, j)) * args.weight(j) * widen(x(i, j));
    }
    const float rrms = 1.0F / std::sqrt(squares / n + static_cast<float>(args.eps));
    const float mean = along * rrms / n;
    for (Index j = 0; j < args.n; ++j) {
      const float normalized = widen(x(i, j)) * rrms;
      dx(i, j) = narrow<S>(rrms * (widen(dy(i, j)) * args.weight(j) - normalized * mean));
      args.dweight(j) += widen(dy(i, j)) * normalized;
    }
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "two loops a row",
                             .run = &run_typed<RmsnormEpsBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "rmsnorm_eps_backward/cpu/naive"),
                                            add<Half>(DType::f16, "rmsnorm_eps_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "rmsnorm_eps_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_rmsnorm_eps_backward
