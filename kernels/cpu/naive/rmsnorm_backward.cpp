// Gradients of rmsnorm on the CPU, in plain loops.
#include "ops/rmsnorm_backward.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_rmsnorm_backward {
namespace {

using ops::RmsnormBackwardArgs;

/// dx[i,j] = rrms[i] (a[i,j] - xn[i,j] sum_k a[i,k] xn[i,k] / n), dweight[j] = sum_i dy[i,j] xn[i,j], where a = dy
/// weight and xn = x rrms
///   x, dy, dx (rows,n), weight, dweight (n), rrms (rows): float32, rows dense. dx and dweight share no memory with the
///   inputs or each other. Sums ascending. Cost 10 rows n operations.
void naive(const RmsnormBackwardArgs& args, Device&) {
  for (Index j = 0; j < args.n; ++j) args.dweight(j) = 0.0F;
  for (Index i = 0; i < args.rows; ++i) {
    const float rrms = args.rrms(i);
    float projection = 0.0F;
    for (Index j = 0; j < args.n; ++j) {
      const float normalized = args.x(i, j) * rrms;
      projection += args.dy(i, j) * args.weight(j) * normalized;
      args.dweight(j) += args.dy(i, j) * normalized;
    }
    const float mean = projection / static_cast<float>(args.n);
    for (Index j = 0; j < args.n; ++j)
      args.dx(i, j) = rrms * (args.dy(i, j) * args.weight(j) - args.x(i, j) * rrms * mean);
  }
}

const KernelRegistration naive_kernel{
    {.id = "rmsnorm_backward/cpu/naive", .summary = "two loops a row", .run = &run_typed<RmsnormBackwardArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_rmsnorm_backward
