// absmax = code[q]·absmax2 + offset on the CPU, in plain loops.
#include "ops/nf4_absmax_dequantize.hpp"

#include "core/nf4_absmax.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_nf4_absmax_dequantize {
namespace {

using ops::Nf4AbsmaxDequantizeArgs;

/// absmax[j,c] = code[q[i]] absmax2[i/256] + offset, i = j b + c
///   codes (256 g), absmax2 (g), offset (1), g = ceil(n b / 256): dense; absmax (n, b): row-major, any leading
///   dimension; it shares no memory. Error: the contract's bound. Cost 5 n b bytes.
void naive(const Nf4AbsmaxDequantizeArgs& args, Device&) {
  for (Index j = 0; j < args.n; ++j)
    for (Index c = 0; c < args.b; ++c) {
      const Index i = j * args.b + c;
      args.absmax(j, c) = kAbsmaxCode[args.codes(i)] * args.absmax2(i / kAbsmaxGroup) + args.offset(0);
    }
}

const KernelRegistration naive_kernel{{.id = "nf4_absmax_dequantize/cpu/naive",
                                       .summary = "two loops, a table in memory",
                                       .run = &run_typed<Nf4AbsmaxDequantizeArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_nf4_absmax_dequantize
