// Gradients of rmsnorm on the CPU, in plain loops.
#include "ops/rmsnorm_backward.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_rmsnorm_backward {
namespace {

using ops::RmsnormBackwardArgs;

/// dx[i,j] = rrms[i] (a[i,j] - xn[i,j] sum_k a[i,k] xn[i,k] / n), dweight[j] = sum_i dy[i,j] xn[i,j], where a = dy
/// weight and xn = x rrms
///   x, dy, dx (rows,n): of S, rows dense; weight, dweight (n), rrms (rows): float32. dx and dweight share no memory
///   with the inputs or each other. Sums ascending. Cost 10 rows n operations.
template <class S>
void naive(const RmsnormBackwardArgs& args, Device&) {
  const View<const S> x = args.x.as<const S>(), dy = args.dy.as<const S>();
  const View<S> dx = args.dx.as<S>();
  for (Index j = 0; j < args.n; ++j) args.dweight(j) = 0.0F;
  for (Index i = 0; i < args.rows; ++i) {
    const float rrms = args.rrms(i);
    float projection = 0.0F;
    for (Index j = 0; j < args.n; ++j) {
      const float normalized = widen(x(i, j)) * rrms;
      projection += widen(dy(i, j)) * args.weight(j) * normalized;
      args.dweight(j) += widen(dy(i, j)) * normalized;
    }
    const float mean = projection / static_cast<float>(args.n);
    for (Index j = 0; j < args.n; ++j)
      dx(i, j) = narrow<S>(rrms * (widen(dy(i, j)) * args.weight(j) - widen(x(i, j)) * rrms * mean));
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "two loops a row", .run = &run_typed<RmsnormBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "rmsnorm_backward/cpu/naive"),
                                            add<Half>(DType::f16, "rmsnorm_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "rmsnorm_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_rmsnorm_backward
