// y[t] = table[ids[t]] on the CPU, in plain loops.
#include "ops/embedding.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_embedding {
namespace {

using ops::EmbeddingArgs;

/// y[t,j] = table[ids[t],j]
///   ids (t) from 0 to v - 1; table (v,h), y (t,h): row-major float32, any leading dimension; y shares no memory with
///   table.
/// Copies: bit for bit. Cost 8 t h bytes.
void naive(const EmbeddingArgs& args, Device&) {
  for (Index t = 0; t < args.t; ++t)
    for (Index j = 0; j < args.h; ++j) args.y(t, j) = args.table(args.ids(t), j);
}

const KernelRegistration naive_kernel{
    {.id = "embedding/cpu/naive", .summary = "two loops", .run = &run_typed<EmbeddingArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_embedding
