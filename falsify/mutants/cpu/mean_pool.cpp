// Wrong mean_pool.
#include "ops/mean_pool.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::mean_pool_mutants {
namespace {

enum class Fault { sum, padding_included, last_token_dropped, last_token_only, bf16_sum };

template <Fault F>
void mutant(const ops::MeanPoolArgs& args, Device&) {
  for (Index b = 0; b < args.b; ++b)
    for (Index j = 0; j < args.h; ++j) {
      const Index length = F == Fault::padding_included ? args.s : args.lengths(b);
      float sum = 0;
      for (Index i = F == Fault::last_token_only ? length - 1 : 0; i < length; ++i) {
        if (F == Fault::last_token_dropped && i > 0 && i == length - 1) continue;
        sum += args.x(b, i, j);
        if (F == Fault::bf16_sum) sum = rounded(sum, 8);
      }
      args.y(b, j) = F == Fault::sum || F == Fault::last_token_only ? sum : sum / static_cast<float>(length);
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::MeanPoolArgs, &mutant<F>>("mean_pool", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::sum>("mutant/cpu/mean_pool/sum", "not divided (bug 71)"),
    add<Fault::padding_included>("mutant/cpu/mean_pool/padding_included", "the mean over all s tokens"),
    add<Fault::last_token_dropped>("mutant/cpu/mean_pool/last_token_dropped", "the last token is left out of the sum"),
    add<Fault::last_token_only>("mutant/cpu/mean_pool/last_token_only", "the last token in place of the mean"),
    add<Fault::bf16_sum>("mutant/cpu/mean_pool/bf16_sum", "the sum held with 8 bits"),
};

}  // namespace
}  // namespace assay::mutants::mean_pool_mutants
