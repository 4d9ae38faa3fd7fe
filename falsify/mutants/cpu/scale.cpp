// Wrong scale.
#include "ops/scale.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::scale_mutants {
namespace {

enum class Fault { bf16_alpha, accumulates, subnormals_flushed, nan_replaced };

template <Fault F>
void mutant(const ops::ScaleArgs& args, Device&) {
  const auto alpha = static_cast<float>(args.alpha);
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float y = (F == Fault::bf16_alpha ? rounded(alpha, 8) : alpha) * args.x(i, j);
      if (F == Fault::accumulates) y += args.y(i, j);
      if (F == Fault::subnormals_flushed && std::fabs(y) < 0x1p-126F) y = 0;
      if (F == Fault::nan_replaced && std::isnan(y)) y = 0;
      args.y(i, j) = y;
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::ScaleArgs, &mutant<F>>("scale", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::bf16_alpha>("mutant/cpu/scale/bf16_alpha", "alpha held with 8 bits"),
    add<Fault::accumulates>("mutant/cpu/scale/accumulates", "adds to what y held (bug 23)"),
    add<Fault::subnormals_flushed>("mutant/cpu/scale/subnormals_flushed", "subnormal results become 0"),
    add<Fault::nan_replaced>("mutant/cpu/scale/nan_replaced", "NaN becomes 0"),
};

}  // namespace
}  // namespace assay::mutants::scale_mutants
