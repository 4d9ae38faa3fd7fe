// y[t] = table[ids[t]] on the CPU.
#include "ops/embedding.hpp"

#include <cstring>

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::EmbeddingArgs;

/// y[t,j] = table[ids[t],j]
///   ids (t) from 0 to v - 1; table (v,h), y (t,h): row-major float32, any leading dimension; y shares no memory with table.
/// Copies: bit for bit. Cost 8 t h bytes.
void naive(const EmbeddingArgs& args, Device&) {
  for (Index t = 0; t < args.t; ++t)
    for (Index j = 0; j < args.h; ++j) args.y(t, j) = args.table(args.ids(t), j);
}

/// The same, a row at a time.
void rows(const EmbeddingArgs& args, Device&) {
  if (args.h == 0) return;
  const Rows<const float> table{args.table.data(), rows_of(args.table).ld};
  const Rows<float> y = rows_of(args.y);
  const auto bytes = static_cast<std::size_t>(args.h) * sizeof(float);
  for (Index t = 0; t < args.t; ++t) std::memcpy(y.data + t * y.ld, table.data + args.ids(t) * table.ld, bytes);
}

const KernelRegistration naive_kernel{{.op = "embedding",
                                       .id = "embedding/cpu/naive",
                                       .source = "kernels/cpu/embedding.cpp",
                                       .summary = "two loops",
                                       .run = &run_typed<EmbeddingArgs, &naive>}};
const KernelRegistration rows_kernel{{.op = "embedding",
                                         .id = "embedding/cpu/rows",
                                         .source = "kernels/cpu/embedding.cpp",
                                         .summary = "whole rows copied",
                                         .run = &run_typed<EmbeddingArgs, &rows>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu
