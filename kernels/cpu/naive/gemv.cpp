// y = A·x on the CPU, in plain loops.
#include "ops/gemv.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_gemv {
namespace {

using ops::GemvArgs;

/// y[i] = sum_p a[i,p] * x[p]
///   a (m,k): row-major float32, any leading dimension; x (k), y (m): any stride. y shares no memory with a or x.
/// One sum over p in ascending order. Error at most k·u·sum_p |a[i,p]||x[p]|. Cost 2mk flops.
void naive(const GemvArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i) {
    float sum = 0.0F;
    for (Index p = 0; p < args.k; ++p) sum += args.a(i, p) * args.x(p);
    args.y(i) = sum;
  }
}

const KernelRegistration naive_kernel{{.id = "gemv/cpu/naive",
                                       .summary = "two loops, one sum per row",
                                       .run = &run_typed<GemvArgs, &naive>,
                                       .priority = -1}};

}  // namespace
}  // namespace assay::cpu::of_gemv
