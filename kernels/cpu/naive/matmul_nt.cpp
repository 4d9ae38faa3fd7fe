// C = A·Bᵀ on the CPU, in plain loops.
#include "ops/matmul_nt.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_matmul_nt {
namespace {

using ops::MatmulNtArgs;

/// c[i,j] = sum_p a[i,p] * b[j,p]
///   a (m,k), b (n,k), c (m,n): row-major, of S, any leading dimension; c shares no memory with a or b.
/// In the order i, j, p: both factors are read along rows. Sums are float32 and rounded once. Error at most
/// k·u·sum_p |a[i,p]||b[j,p]|, and half a unit of S. Cost 2mkn flops.
template <class S>
void naive(const MatmulNtArgs& args, Device&) {
  const auto a = args.a.as<const S>(), b = args.b.as<const S>();
  const auto c = args.c.as<S>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0.0F;
      for (Index p = 0; p < args.k; ++p) sum += widen(a(i, p)) * widen(b(j, p));
      c(i, j) = narrow<S>(sum);
    }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "three loops in the order i, p, j",
                             .run = &run_typed<MatmulNtArgs, &naive<S>>,
                             .priority = -1});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "matmul_nt/cpu/naive"),
                                            add<Half>(DType::f16, "matmul_nt/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "matmul_nt/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_matmul_nt
