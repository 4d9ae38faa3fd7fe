// Wrong embedding.
#include "ops/embedding.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::embedding_mutants {
namespace {

enum class Fault { next_row, vocabulary_as_width, width_as_stride, wrapped, nan_replaced };

template <Fault F>
void mutant(const ops::EmbeddingArgs& args, Device&) {
  const Index ld = F == Fault::vocabulary_as_width && args.v < args.h ? args.v : args.table.stride(0);
  for (Index t = 0; t < args.t; ++t)
    for (Index j = 0; j < args.h; ++j) {
      Index id = args.ids(t);
      if (F == Fault::next_row) id = std::max<Index>(0, id - 1);
      if (F == Fault::wrapped) id %= 16;
      float x = args.table.data()[id * ld + j];
      if (F == Fault::nan_replaced && std::isnan(x)) x = 0;
      args.y.data()[t * (F == Fault::width_as_stride ? args.h : args.y.stride(0)) + j] = x;
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::EmbeddingArgs, &mutant<F>>("embedding", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::next_row>("mutant/cpu/embedding/next_row", "ids count from 1"),
    add<Fault::vocabulary_as_width>("mutant/cpu/embedding/vocabulary_as_width",
                                    "v used as leading dimension of the table (bug 4)"),
    add<Fault::width_as_stride>("mutant/cpu/embedding/width_as_stride", "h used as leading dimension of y (bug 39)"),
    add<Fault::wrapped>("mutant/cpu/embedding/wrapped", "id modulo a power of two (bug 8)"),
    add<Fault::nan_replaced>("mutant/cpu/embedding/nan_replaced", "NaN becomes 0"),
};

}  // namespace
}  // namespace assay::mutants::embedding_mutants
