// dx = dy and dbias = sums of the columns of dy on the CPU, in plain loops.
#include "ops/bias_add_backward.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_bias_add_backward {
namespace {

using ops::BiasAddBackwardArgs;

/// dx[i,j] = dy[i,j], dbias[j] = sum_i dy[i,j]
///   dy, dx (m,n): row-major float32, any leading dimension; dbias (n); they share no memory.
/// One sum a column, i ascending. Error at most m·u·sum_i |dy[i,j]|. Cost 8 m n bytes.
void naive(const BiasAddBackwardArgs& args, Device&) {
  for (Index j = 0; j < args.n; ++j) {
    float sum = 0.0F;
    for (Index i = 0; i < args.m; ++i) {
      sum += args.dy(i, j);
      args.dx(i, j) = args.dy(i, j);
    }
    args.dbias(j) = sum;
  }
}

const KernelRegistration naive_kernel{{.id = "bias_add_backward/cpu/naive",
                                       .summary = "one sum per column",
                                       .run = &run_typed<BiasAddBackwardArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_bias_add_backward
