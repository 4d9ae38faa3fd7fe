// Wrong bias_add.
#include "ops/bias_add.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::bias_add_mutants {
namespace {

enum class Fault { by_row, added_twice, first_tile_only, bf16_bias };

template <Fault F>
void mutant(const ops::BiasAddArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float bias = args.bias(F == Fault::by_row && args.m == args.n ? i : j);
      if (F == Fault::first_tile_only && j >= 64) bias = 0;
      if (F == Fault::bf16_bias) bias = rounded(bias, 8);
      args.y(i, j) = args.x(i, j) + bias + (F == Fault::added_twice ? bias : 0);
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::BiasAddArgs, &mutant<F>>("bias_add", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::by_row>("mutant/cpu/bias_add/by_row", "bias[i] in place of bias[j] on square matrices"),
    add<Fault::added_twice>("mutant/cpu/bias_add/added_twice", "the bias is added twice"),
    add<Fault::first_tile_only>("mutant/cpu/bias_add/first_tile_only", "columns past 64 get no bias"),
    add<Fault::bf16_bias>("mutant/cpu/bias_add/bf16_bias", "the bias held with 8 bits"),
};

}  // namespace
}  // namespace assay::mutants::bias_add_mutants
