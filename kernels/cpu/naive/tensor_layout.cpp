// dst = src between any two layouts of a matrix on the CPU, in plain loops.
#include "ops/tensor_layout.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_tensor_layout {
namespace {

using ops::TensorLayoutArgs;

/// dst[i,j] = src[i,j]
///   src (m,n), dst (m,n): float32, any strides that map no two indices to the same element; no shared memory.
/// Copies bit for bit, including NaN payloads and signs of zeros. Cost 2mn memory accesses.
void naive(const TensorLayoutArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.dst(i, j) = args.src(i, j);
}

const KernelRegistration naive_kernel{{.id = "tensor_layout/cpu/naive",
                                       .summary = "two loops over strides",
                                       .run = &run_typed<TensorLayoutArgs, &naive>,
                                       .priority = -1}};

}  // namespace
}  // namespace assay::cpu::of_tensor_layout
