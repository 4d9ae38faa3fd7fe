// Softmax of rows on the CPU, in plain loops.
#include "ops/softmax.hpp"

#include <cmath>

#include "runtime/registry.hpp"

namespace assay::cpu::of_softmax {
namespace {

using ops::SoftmaxArgs;

/// y[i,j] = exp(x[i,j] - m) / sum_k exp(x[i,k] - m), m = max_k x[i,k]; zeros if all of a row is -inf
///   x, y (rows,n): float32, rows dense; they share no memory. The maximum is found before the first exponential.
void naive(const SoftmaxArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i) {
    float shift = args.x(i, 0), sum = 0.0F;
    for (Index j = 1; j < args.n; ++j) shift = shift < args.x(i, j) ? args.x(i, j) : shift;
    if (shift == -INFINITY) shift = 0.0F;
    for (Index j = 0; j < args.n; ++j) sum += args.y(i, j) = std::exp(args.x(i, j) - shift);
    for (Index j = 0; j < args.n; ++j) args.y(i, j) = sum == 0.0F ? 0.0F : args.y(i, j) / sum;
  }
}

const KernelRegistration naive_kernel{
    {.id = "softmax/cpu/naive", .summary = "four loops a row", .run = &run_typed<SoftmaxArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_softmax
