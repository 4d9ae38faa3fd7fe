// Wrong accumulate.
#include "ops/accumulate.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::accumulate_mutants {
namespace {

enum class Fault { added_twice, only_into_zero, last_row_missing, f16_sum };

template <Fault F>
void mutant(const ops::AccumulateArgs& args, Device&) {
  const auto alpha = static_cast<float>(args.alpha);
  const Index rows = F == Fault::last_row_missing && args.m > 1 ? args.m - 1 : args.m;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float& dst = args.dst(i, j);
      if (F == Fault::only_into_zero && dst != 0) continue;
      dst += alpha * args.src(i, j);
      if (F == Fault::added_twice) dst += alpha * args.src(i, j);
      if (F == Fault::f16_sum) dst = rounded(dst, 11);
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::AccumulateArgs, &mutant<F>>("accumulate", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::added_twice>("mutant/cpu/accumulate/added_twice", "src is added twice (bug 56)"),
    add<Fault::only_into_zero>("mutant/cpu/accumulate/only_into_zero",
                               "dst keeps what it held where that is not 0 (bug 55)"),
    add<Fault::last_row_missing>("mutant/cpu/accumulate/last_row_missing", "the last row is left out (bug 26)"),
    add<Fault::f16_sum>("mutant/cpu/accumulate/f16_sum", "the sum held with 11 bits"),
};

}  // namespace
}  // namespace assay::mutants::accumulate_mutants
