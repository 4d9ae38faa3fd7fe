// y = code[q]·absmax on the CPU, in plain loops.
#include "ops/nf4_dequantize.hpp"

#include "core/nf4.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_nf4_dequantize {
namespace {

using ops::Nf4DequantizeArgs;

/// y[j,p] = code[q[j,p]] absmax[j, p/64]
///   codes (n, 32 b), absmax (n, b), y (n, k), b = ceil(k/64): row-major, any leading dimension; y shares no memory.
/// One rounding: the contract fixes the bits. Cost 4.6 n k bytes.
void naive(const Nf4DequantizeArgs& args, Device&) {
  for (Index j = 0; j < args.n; ++j)
    for (Index p = 0; p < args.k; ++p)
      args.y(j, p) = kNf4[nf4_code(&args.codes(j, 0), p)] * nf4_scale(args.absmax(j, p / kNf4Block));
}

const KernelRegistration naive_kernel{{.id = "nf4_dequantize/cpu/naive",
                                       .summary = "two loops, a table in memory",
                                       .run = &run_typed<Nf4DequantizeArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_nf4_dequantize
