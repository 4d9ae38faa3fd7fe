// Values of Q4_K super-blocks on the CPU, in plain loops.
#include "ops/q4_k_dequantize.hpp"

#include "core/q4_k.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_q4_k_dequantize {
namespace {

using ops::Q4KDequantizeArgs;

/// y[i,p] = d sc q - dmin m
///   blocks (rows, ceil(k/256)*144): bytes, rows at multiples of 4; y (rows,k): row-major float32, any leading
///   dimension;
///   y shares no memory with blocks. Bit for bit. Cost 0.5625 + 4 bytes a value.
void naive(const Q4KDequantizeArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i)
    for (Index p = 0; p < args.k; ++p)
      args.y(i, p) = q4_k::value_at(&args.blocks(i, p / q4_k::kValues * q4_k::kBytes), p % q4_k::kValues);
}

const KernelRegistration naive_kernel{
    {.id = "q4_k_dequantize/cpu/naive", .summary = "two loops", .run = &run_typed<Q4KDequantizeArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_q4_k_dequantize
