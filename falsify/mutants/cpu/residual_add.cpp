// Wrong residual_add.
#include "ops/residual_add.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::residual_add_mutants {
namespace {

enum class Fault {
  branch_subtracted,
  both_scaled,
  bf16_branch,
  width_as_stride,
  one_past_the_row,
  large_tail_unwritten
};

template <Fault F>
void mutant(const ops::ResidualAddArgs& args, Device&) {
  const auto alpha = static_cast<float>(args.alpha);
  const Index r_ld = F == Fault::width_as_stride ? args.n : args.r.stride(0);
  for (Index i = 0; i < args.m; ++i) {
    for (Index j = 0; j < args.n; ++j) {
      if (F == Fault::large_tail_unwritten && args.m * args.n >= Index{1} << 21 && j >= args.n / 16 * 16) continue;
      const float x = args.x(i, j), r = args.r.data()[i * r_ld + j];
      float y = x + alpha * r;
      if (F == Fault::branch_subtracted) y = x - alpha * r;
      if (F == Fault::both_scaled) y = alpha * (x + r);
      if (F == Fault::bf16_branch) y = x + alpha * rounded(r, 8);
      args.y(i, j) = y;
    }
    if (F == Fault::one_past_the_row && args.n > 0 && i == args.m - 1) args.y.data()[i * args.y.stride(0) + args.n] = 0;
  }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::ResidualAddArgs, &mutant<F>>("residual_add", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::branch_subtracted>("mutant/cpu/residual_add/branch_subtracted", "x - alpha r"),
    add<Fault::both_scaled>("mutant/cpu/residual_add/both_scaled", "alpha (x + r)"),
    add<Fault::bf16_branch>("mutant/cpu/residual_add/bf16_branch", "the branch held with 8 bits"),
    add<Fault::width_as_stride>("mutant/cpu/residual_add/width_as_stride",
                                "the width used as leading dimension of r (bug 39)"),
    add<Fault::large_tail_unwritten>("mutant/cpu/residual_add/large_tail_unwritten",
                                     "tails unwritten where the matrix exceeds the cache (bug 8)"),
    add<Fault::one_past_the_row>("mutant/cpu/residual_add/one_past_the_row",
                                 "one element more than the row is written (bug 16)"),
};

}  // namespace
}  // namespace assay::mutants::residual_add_mutants
