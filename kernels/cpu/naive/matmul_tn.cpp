// C = Aᵀ·B on the CPU, in plain loops.
#include "ops/matmul_tn.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_matmul_tn {
namespace {

using ops::MatmulTnArgs;

/// c[i,j] = sum_p a[p,i] * b[p,j]
///   a (k,m), b (k,n): row-major, of S; c (m,n): row-major float32; any leading dimension; c shares no memory with a or b.
/// In the order i, p, j: the inner loop runs along rows of b and c. Error at most k·u·sum_p |a[p,i]||b[p,j]|.
/// Cost 2mkn flops.
template <class S>
void naive(const MatmulTnArgs& args, Device&) {
  const auto a = args.a.as<const S>(), b = args.b.as<const S>();
  for (Index i = 0; i < args.m; ++i) {
    for (Index j = 0; j < args.n; ++j) args.c(i, j) = 0.0F;
    for (Index p = 0; p < args.k; ++p)
      for (Index j = 0; j < args.n; ++j) args.c(i, j) += widen(a(p, i)) * widen(b(p, j));
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "three loops in the order i, p, j",
                             .run = &run_typed<MatmulTnArgs, &naive<S>>,
                             .priority = -1});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "matmul_tn/cpu/naive"),
                                            add<Half>(DType::f16, "matmul_tn/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "matmul_tn/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_matmul_tn
