// Wrong embedding_backward.
#include "ops/embedding_backward.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::embedding_backward_mutants {
namespace {

enum class Fault { overwrites, accumulates, mean, last_token_dropped, bf16_sum };

template <Fault F>
void mutant(const ops::EmbeddingBackwardArgs& args, Device&) {
  const Index tokens = F == Fault::last_token_dropped && args.t > 1 ? args.t - 1 : args.t;
  for (Index v = 0; v < args.v; ++v)
    for (Index j = 0; j < args.h; ++j) {
      float sum = F == Fault::accumulates ? args.dtable(v, j) : 0;
      Index count = 0;
      for (Index t = 0; t < tokens; ++t) {
        if (args.ids(t) != v) continue;
        sum = F == Fault::overwrites ? args.dy(t, j) : sum + args.dy(t, j);
        if (F == Fault::bf16_sum) sum = rounded(sum, 8);
        ++count;
      }
      args.dtable(v, j) = F == Fault::mean && count > 0 ? sum / static_cast<float>(count) : sum;
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::EmbeddingBackwardArgs, &mutant<F>>("embedding_backward", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::overwrites>("mutant/cpu/embedding_backward/overwrites", "the last token of an id wins"),
    add<Fault::accumulates>("mutant/cpu/embedding_backward/accumulates", "adds to what dtable held (bug 29)"),
    add<Fault::mean>("mutant/cpu/embedding_backward/mean", "the mean over the tokens of an id (bug 71)"),
    add<Fault::last_token_dropped>("mutant/cpu/embedding_backward/last_token_dropped", "the last token is left out"),
    add<Fault::bf16_sum>("mutant/cpu/embedding_backward/bf16_sum", "the sum held with 8 bits"),
};

}  // namespace
}  // namespace assay::mutants::embedding_backward_mutants
