// The mean of the first tokens of each sequence on the CPU, in plain loops.
#include "ops/mean_pool.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_mean_pool {
namespace {

using ops::MeanPoolArgs;

/// y[b,j] = sum_(i < lengths[b]) x[b,i,j] / lengths[b]
///   x (b,s,h), y (b,h): row-major float32, any outer strides; lengths (b) from 1 to s; y shares no memory with x.
/// One sum, i ascending, and one division. Error at most lengths[b]·u·sum_i |x[b,i,j]| / lengths[b] + u|y|. Reads no
/// padding.
void naive(const MeanPoolArgs& args, Device&) {
  for (Index b = 0; b < args.b; ++b)
    for (Index j = 0; j < args.h; ++j) {
      float sum = 0.0F;
      for (Index i = 0; i < args.lengths(b); ++i) sum += args.x(b, i, j);
      args.y(b, j) = sum / static_cast<float>(args.lengths(b));
    }
}

const KernelRegistration naive_kernel{
    {.id = "mean_pool/cpu/naive", .summary = "one sum per column", .run = &run_typed<MeanPoolArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_mean_pool
