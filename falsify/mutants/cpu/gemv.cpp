// Wrong products y = A · x.
#include "ops/gemv.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::gemv_mutants {
namespace {

enum class Fault { increment_ignored, last_partial_dropped, accumulates, rows_beyond_first, nan_swallowed, f16_sum, transposed, y_increment_ignored, one_element_at_large };

template <Fault F>
void mutant(const ops::GemvArgs& args, Device&) {
  const Index incx = F == Fault::increment_ignored ? 1 : args.x.stride(0);
  const Index incy = F == Fault::y_increment_ignored ? 1 : args.y.stride(0);
  const Index k = F == Fault::last_partial_dropped && args.k > 32 ? args.k / 32 * 32 : args.k;
  for (Index i = 0; i < args.m; ++i) {
    float sum = 0;
    for (Index p = 0; p < k; ++p) {
      const float a = F == Fault::transposed && args.m == args.k ? args.a(p, i) : args.a(i, p);
      const float term = a * args.x.data()[p * incx];
      if (F == Fault::nan_swallowed && !std::isfinite(term)) continue;
      sum += term;
      if (F == Fault::f16_sum) sum = rounded(sum, 11);
    }
    float& y = args.y.data()[i * incy];
    if (F == Fault::rows_beyond_first && i >= 64) sum = 0;
    if (F == Fault::one_element_at_large && i == 512 && args.k > 512) sum += 1;
    y = F == Fault::accumulates ? y + sum : sum;
  }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::GemvArgs, &mutant<F>>("gemv", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::increment_ignored>("mutant/cpu/gemv/increment_ignored", "the stride of x is taken as 1"),
    add<Fault::y_increment_ignored>("mutant/cpu/gemv/y_increment_ignored", "the stride of y is taken as 1"),
    add<Fault::last_partial_dropped>("mutant/cpu/gemv/last_partial_dropped", "floor instead of ceiling of K / 32 (bug 8)"),
    add<Fault::accumulates>("mutant/cpu/gemv/accumulates", "adds to what y held (bug 23)"),
    add<Fault::rows_beyond_first>("mutant/cpu/gemv/rows_beyond_64", "rows from 64 on are zero"),
    add<Fault::nan_swallowed>("mutant/cpu/gemv/nan_swallowed", "terms that are not finite are left out"),
    add<Fault::f16_sum>("mutant/cpu/gemv/f16_sum", "partial sums held with 11 bits"),
    add<Fault::one_element_at_large>("mutant/cpu/gemv/one_element_at_large", "y[512] is 1 too large where K > 512"),
    add<Fault::transposed>("mutant/cpu/gemv/transposed", "Aᵀ · x on square A (bug 4)"),
};

}  // namespace
}  // namespace assay::mutants::gemv_mutants
