// Wrong bias_add_backward.
#include "ops/bias_add_backward.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::bias_add_backward_mutants {
namespace {

enum class Fault { mean, last_row_dropped, bf16_sum, accumulates, rows_summed };

template <Fault F>
void mutant(const ops::BiasAddBackwardArgs& args, Device&) {
  const Index rows = F == Fault::last_row_dropped && args.m > 1 ? args.m - 1 : args.m;
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.dx(i, j) = args.dy(i, j);
  for (Index j = 0; j < args.n; ++j) {
    float sum = F == Fault::accumulates ? args.dbias(j) : 0;
    for (Index i = 0; i < rows; ++i) {
      sum += F == Fault::rows_summed && args.m == args.n ? args.dy(j, i) : args.dy(i, j);
      if (F == Fault::bf16_sum) sum = rounded(sum, 8);
    }
    args.dbias(j) = F == Fault::mean && args.m > 0 ? sum / static_cast<float>(args.m) : sum;
  }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::BiasAddBackwardArgs, &mutant<F>>("bias_add_backward", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::mean>("mutant/cpu/bias_add_backward/mean", "the mean in place of the sum (bug 71)"),
    add<Fault::last_row_dropped>("mutant/cpu/bias_add_backward/last_row_dropped", "dbias lacks the last row"),
    add<Fault::bf16_sum>("mutant/cpu/bias_add_backward/bf16_sum", "the sum held with 8 bits"),
    add<Fault::accumulates>("mutant/cpu/bias_add_backward/accumulates", "adds to what dbias held (bug 29)"),
    add<Fault::rows_summed>("mutant/cpu/bias_add_backward/rows_summed", "sums of rows on square matrices (bug 4)"),
};

}  // namespace
}  // namespace assay::mutants::bias_add_backward_mutants
