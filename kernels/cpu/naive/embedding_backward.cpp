// The gradient of rows of a table by index on the CPU, in plain loops.
#include "ops/embedding_backward.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_embedding_backward {
namespace {

using ops::EmbeddingBackwardArgs;

/// dtable[v,j] = sum over t with ids[t] = v of dy[t,j]
///   ids (t) from 0 to v - 1; dy (t,h), dtable (v,h): row-major float32, any leading dimension; dtable shares no memory
///   with dy.
/// Sums by t ascending. Error at most k·u·sum |dy[t,j]| for k tokens of an id. Cost 4 v h + 8 t h bytes.
void naive(const EmbeddingBackwardArgs& args, Device&) {
  for (Index v = 0; v < args.v; ++v)
    for (Index j = 0; j < args.h; ++j) args.dtable(v, j) = 0.0F;
  for (Index t = 0; t < args.t; ++t)
    for (Index j = 0; j < args.h; ++j) args.dtable(args.ids(t), j) += args.dy(t, j);
}

const KernelRegistration naive_kernel{{.id = "embedding_backward/cpu/naive",
                                       .summary = "two loops, tokens in order",
                                       .run = &run_typed<EmbeddingBackwardArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_embedding_backward
