// Wrong mean_pool_backward.
#include "ops/mean_pool_backward.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::mean_pool_backward_mutants {
namespace {

enum class Fault { not_divided, last_token_only, padding_too, accumulates };

template <Fault F>
void mutant(const ops::MeanPoolBackwardArgs& args, Device&) {
  for (Index b = 0; b < args.b; ++b)
    for (Index i = 0; i < args.s; ++i)
      for (Index j = 0; j < args.h; ++j) {
        const Index length = args.lengths(b);
        float share = args.dy(b, j) / static_cast<float>(F == Fault::not_divided ? 1 : length);
        if (F == Fault::last_token_only) share = i == length - 1 ? args.dy(b, j) : 0;
        if (F != Fault::padding_too && i >= length) share = 0;
        args.dx(b, i, j) = F == Fault::accumulates ? args.dx(b, i, j) + share : share;
      }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::MeanPoolBackwardArgs, &mutant<F>>("mean_pool_backward", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::not_divided>("mutant/cpu/mean_pool_backward/not_divided", "dy itself"),
    add<Fault::last_token_only>("mutant/cpu/mean_pool_backward/last_token_only", "all of dy goes to the last token"),
    add<Fault::padding_too>("mutant/cpu/mean_pool_backward/padding_too", "padding gets a gradient"),
    add<Fault::accumulates>("mutant/cpu/mean_pool_backward/accumulates", "adds to what dx held (bug 29)"),
};

}  // namespace
}  // namespace assay::mutants::mean_pool_backward_mutants
