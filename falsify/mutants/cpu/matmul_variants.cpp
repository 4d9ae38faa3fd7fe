// Wrong products with a transposed factor: C = A · Bᵀ and C = Aᵀ · B.
#include <algorithm>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"
#include "ops/matmul_nt.hpp"
#include "ops/matmul_tn.hpp"

namespace assay::mutants::matmul_variants_mutants {
namespace {

enum class Fault { factor_not_transposed, swapped_operands, width_as_stride, dropped_first_k, last_column_unwritten, tf32_inputs, one_element_at_large };

template <Fault F, class Args, class A, class B>
void multiply(const Args& args, A a, B b) {
  const Index n = F == Fault::last_column_unwritten && args.n > 1 ? args.n - 1 : args.n;
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < n; ++j) {
      float sum = 0;
      if (F == Fault::one_element_at_large && i == 512 && j == 512) sum = 1;
      for (Index p = F == Fault::dropped_first_k && args.k > 8 ? 1 : 0; p < args.k; ++p) {
        float x = a(i, p), y = b(p, j);
        if (F == Fault::tf32_inputs) x = rounded(x, 11), y = rounded(y, 11);
        sum += x * y;
      }
      args.c(i, j) = sum;
    }
}

template <Fault F>
void nt(const ops::MatmulNtArgs& args, Device&) {
  const float* a = args.a.data();
  const float* b = args.b.data();
  const Index lda = args.a.stride(0), ldb = F == Fault::width_as_stride ? args.k : args.b.stride(0);
  if (F == Fault::swapped_operands)
    return multiply<F>(args, [&](Index i, Index p) { return b[i % std::max<Index>(args.n, 1) * ldb + p]; },
                       [&](Index p, Index j) { return a[j % std::max<Index>(args.m, 1) * lda + p]; });
  multiply<F>(args, [&](Index i, Index p) { return a[i * lda + p]; },
              [&](Index p, Index j) { return F == Fault::factor_not_transposed ? b[p * ldb + j] : b[j * ldb + p]; });
}

template <Fault F>
void tn(const ops::MatmulTnArgs& args, Device&) {
  const float* a = args.a.data();
  const float* b = args.b.data();
  const Index lda = F == Fault::width_as_stride ? args.m : args.a.stride(0), ldb = args.b.stride(0);
  multiply<F>(args, [&](Index i, Index p) { return F == Fault::factor_not_transposed ? a[i * lda + p] : a[p * lda + i]; },
              [&](Index p, Index j) { return b[p * ldb + j]; });
}

template <Fault F>
KernelRegistration add_nt(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::MatmulNtArgs, &nt<F>>("matmul_nt", id, fault);
}
template <Fault F>
KernelRegistration add_tn(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::MatmulTnArgs, &tn<F>>("matmul_tn", id, fault);
}

const KernelRegistration registrations[] = {
    add_nt<Fault::factor_not_transposed>("mutant/cpu/matmul_nt/not_transposed", "A · B instead of A · Bᵀ (bug 3)"),
    add_nt<Fault::swapped_operands>("mutant/cpu/matmul_nt/swapped_operands", "A and B exchanged: Cᵀ on square shapes (bug 5)"),
    add_nt<Fault::width_as_stride>("mutant/cpu/matmul_nt/width_as_stride", "width used as leading dimension of B"),
    add_nt<Fault::last_column_unwritten>("mutant/cpu/matmul_nt/last_column_unwritten", "the last column is not written (bug 29)"),
    add_nt<Fault::tf32_inputs>("mutant/cpu/matmul_nt/tf32_inputs", "inputs rounded to TF32"),
    add_nt<Fault::one_element_at_large>("mutant/cpu/matmul_nt/one_element_at_large", "c[512, 512] is 1 too large"),
    add_tn<Fault::one_element_at_large>("mutant/cpu/matmul_tn/one_element_at_large", "c[512, 512] is 1 too large"),
    add_tn<Fault::factor_not_transposed>("mutant/cpu/matmul_tn/not_transposed", "A · B instead of Aᵀ · B (bug 12)"),
    add_tn<Fault::width_as_stride>("mutant/cpu/matmul_tn/width_as_stride", "width used as leading dimension of A"),
    add_tn<Fault::dropped_first_k>("mutant/cpu/matmul_tn/dropped_first_k", "the first k dropped where K > 8"),
};

}  // namespace
}  // namespace assay::mutants::matmul_variants_mutants
