// The gradient of rows of a table by index on the CPU, in plain loops.
#include "ops/embedding_backward.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_embedding_backward {
namespace {

using ops::EmbeddingBackwardArgs;

/// dtable[v,j] = sum over t with ids[t] = v of dy[t,j]
///   ids (t) from 0 to v - 1; dy (t,h), dtable (v,h): row-major, of S, any leading dimension; dtable shares no memory
///   with dy.
/// Sums by t ascending. Error at most k·u·sum |dy[t,j]| for k tokens of an id. Cost 4 v h + 8 t h bytes.
template <class S>
void naive(const EmbeddingBackwardArgs& args, Device&) {
  const View<const S> dy = args.dy.as<const S>();
  for (Index v = 0; v < args.v; ++v)
    for (Index j = 0; j < args.h; ++j) args.dtable(v, j) = 0.0F;
  for (Index t = 0; t < args.t; ++t)
    for (Index j = 0; j < args.h; ++j) args.dtable(args.ids(t), j) += widen(dy(t, j));
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "two loops, tokens in order",
                             .run = &run_typed<EmbeddingBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "embedding_backward/cpu/naive"),
                                            add<Half>(DType::f16, "embedding_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "embedding_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_embedding_backward
