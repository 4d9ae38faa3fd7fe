// C = A·B on the CPU, in plain loops.
#include "ops/matmul.hpp"

#include "serve/scratch.hpp"
#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_matmul {
namespace {

using ops::MatmulArgs;

/// c[i,j] = sum_p a[i,p] * b[p,j]
///   a (m,k), b (k,n), c (m,n): row-major, of S, any leading dimension; c shares no memory with a or b.
/// In the order i, p, j: the inner loop runs along rows of b and c, and each c[i,j] is still one sum over p in
/// ascending order, in float32, rounded once. Error at most k·u·sum_p |a[i,p]||b[p,j]|, and half a unit of S.
/// Cost 2mkn flops.
template <class S>
void naive(const MatmulArgs& args, Device&) {
  const auto a = args.a.as<const S>(), b = args.b.as<const S>();
  const auto c = args.c.as<S>();
  const Scratch<float> row(static_cast<std::size_t>(args.n));
  float* const sum = row.data();
  for (Index i = 0; i < args.m; ++i) {
    for (Index j = 0; j < args.n; ++j) sum[j] = 0.0F;
    for (Index p = 0; p < args.k; ++p)
      for (Index j = 0; j < args.n; ++j) sum[j] += widen(a(i, p)) * widen(b(p, j));
    for (Index j = 0; j < args.n; ++j) c(i, j) = narrow<S>(sum[j]);
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "three loops in the order i, p, j",
                             .run = &run_typed<MatmulArgs, &naive<S>>,
                             .priority = -1});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "matmul/cpu/naive"),
                                            add<Half>(DType::f16, "matmul/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "matmul/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_matmul
