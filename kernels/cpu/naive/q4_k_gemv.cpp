// y = W·x for W in Q4_K super-blocks on the CPU, in plain loops.
#include "ops/q4_k_gemv.hpp"

#include "core/q4_k.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_q4_k_gemv {
namespace {

using ops::Q4KGemvArgs;

/// y[i] = sum_p w[i,p] x[p]
///   blocks (rows, ceil(k/256)*144): bytes, rows at multiples of 4, of which w (rows,k) are the values; x (k), y
///   (rows):
///   float32. y shares no memory with blocks or x. One sum over p in ascending order. Error at most k·u·sum_p |w||x|.
void naive(const Q4KGemvArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0.0F;
    for (Index p = 0; p < args.k; ++p)
      sum += q4_k::value_at(&args.blocks(i, p / q4_k::kValues * q4_k::kBytes), p % q4_k::kValues) * args.x(p);
    args.y(i) = sum;
  }
}

const KernelRegistration naive_kernel{
    {.id = "q4_k_gemv/cpu/naive", .summary = "two loops, one sum per row", .run = &run_typed<Q4KGemvArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_q4_k_gemv
