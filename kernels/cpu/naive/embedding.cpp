// y[t] = table[ids[t]] on the CPU, in plain loops.
#include "ops/embedding.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_embedding {
namespace {

using ops::EmbeddingArgs;

/// y[t,j] = table[ids[t],j]
///   ids (t) from 0 to v - 1; table (v,h), y (t,h): row-major, of S, any leading dimension; y shares no memory with
///   table.
/// Copies: bit for bit. Cost 8 t h bytes.
template <class S>
void naive(const EmbeddingArgs& args, Device&) {
  const View<const S> table = args.table.as<const S>();
  const View<S> y = args.y.as<S>();
  for (Index t = 0; t < args.t; ++t)
    for (Index j = 0; j < args.h; ++j) y(t, j) = table(args.ids(t), j);
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "two loops", .run = &run_typed<EmbeddingArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "embedding/cpu/naive"),
                                            add<Half>(DType::f16, "embedding/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "embedding/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_embedding
