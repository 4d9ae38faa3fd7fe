// Wrong products of a matrix in Q4_K super-blocks and a vector.
#include "ops/q4_k_gemv.hpp"

#include <algorithm>
#include <cmath>

#include "core/q4_k.hpp"
#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"

namespace assay::mutants::q4_k_gemv_mutants {
namespace {

using namespace q4_k;

enum class Fault {
  padding_multiplied, floor_of_blocks, rows_joined, nibbles_swapped, high_scales_short, x_bf16, x_int8, f16_sum,
  accumulates, zeros_skipped, first_row_for_all, read_as_q4_0, weight_bf16, one_element_at_large, minimum_dropped,
};

/// 18 bytes of 32 values: d, then 16 bytes of nibbles, q - 8.
float value_of_q4_0(const std::uint8_t* row, Index p) {
  const std::uint8_t* const block = row + p / 32 * 18;
  const unsigned pair = block[2 + p % 16];
  return widen(half_at(block)) * (static_cast<float>(p % 32 < 16 ? pair & 15U : pair >> 4U) - 8.0F);
}

template <Fault F>
float weight(const std::uint8_t* row, Index k, Index p) {
  if (F == Fault::read_as_q4_0 && k / 32 * 18 == row_bytes(k)) return value_of_q4_0(row, p);
  const std::uint8_t* const block = row + p / kValues * kBytes;
  const Index i = p % kValues, b = i / kSubBlock;
  Scale s = unpack(block + kPacked, b);
  if (F == Fault::high_scales_short && b >= 4) s.scale &= 15U;
  if (F == Fault::minimum_dropped) s.minimum = 0;
  const unsigned code = code_at(block, F == Fault::nibbles_swapped ? i ^ 32 : i);
  const float w = widen(half_at(block)) * static_cast<float>(s.scale) * static_cast<float>(code) -
                  widen(half_at(block + 2)) * static_cast<float>(s.minimum);
  return F == Fault::weight_bf16 ? rounded(w, 8) : w;
}

template <Fault F>
void mutant(const ops::Q4KGemvArgs& args, Device&) {
  float largest = 0;
  for (Index p = 0; p < args.k; ++p) largest = std::max(largest, std::fabs(args.x(p)));
  const Index k = F == Fault::floor_of_blocks      ? args.k / kValues * kValues
                  : F == Fault::padding_multiplied ? blocks_of(args.k) * kValues
                                                   : args.k;
  for (Index i = 0; i < args.rows; ++i) {
    const Index start = F == Fault::rows_joined ? i * args.k / kValues * kBytes : i * args.blocks.stride(0);
    const std::uint8_t* const row = args.blocks.data() + (F == Fault::first_row_for_all ? 0 : start);
    float sum = 0;
    for (Index p = 0; p < k; ++p) {
      float x = args.x(std::min(p, args.k - 1));
      if (F == Fault::x_bf16) x = rounded(x, 8);
      if (F == Fault::x_int8 && largest > 0) x = std::round(x / largest * 127) * (largest / 127);
      if (F == Fault::zeros_skipped && x == 0) continue;
      sum += weight<F>(row, args.k, p) * x;
      if (F == Fault::f16_sum) sum = rounded(sum, 11);
    }
    if (F == Fault::one_element_at_large && i == 512 && args.k > 512) sum += 1;
    args.y(i) = F == Fault::accumulates ? args.y(i) + sum : sum;
  }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::Q4KGemvArgs, &mutant<F>>("q4_k_gemv", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::padding_multiplied>("mutant/cpu/q4_k_gemv/padding_multiplied",
                                   "padding takes part, times the last x (bug 7)"),
    add<Fault::floor_of_blocks>("mutant/cpu/q4_k_gemv/floor_of_blocks", "floor instead of ceiling of k / 256 (bug 8)"),
    add<Fault::rows_joined>("mutant/cpu/q4_k_gemv/rows_joined",
                            "a ragged row starts in the last super-block of the row before (bug 7)"),
    add<Fault::nibbles_swapped>("mutant/cpu/q4_k_gemv/nibbles_swapped", "high nibbles first (bug 84)"),
    add<Fault::high_scales_short>("mutant/cpu/q4_k_gemv/high_scales_short",
                                  "scales of sub-blocks 4 to 7 lack their upper two bits (bug 85)"),
    add<Fault::x_bf16>("mutant/cpu/q4_k_gemv/x_bf16", "x rounded to bfloat16"),
    add<Fault::x_int8>("mutant/cpu/q4_k_gemv/x_int8", "x quantized to 8 bits"),
    add<Fault::weight_bf16>("mutant/cpu/q4_k_gemv/weight_bf16", "weights rounded to bfloat16"),
    add<Fault::f16_sum>("mutant/cpu/q4_k_gemv/f16_sum", "partial sums held with 11 bits"),
    add<Fault::accumulates>("mutant/cpu/q4_k_gemv/accumulates", "adds to what y held (bug 23)"),
    add<Fault::zeros_skipped>("mutant/cpu/q4_k_gemv/zeros_skipped", "zeros of x are left out: 0 * Inf is no NaN"),
    add<Fault::first_row_for_all>("mutant/cpu/q4_k_gemv/first_row_for_all", "every row reads the first one's weights (bug 43)"),
    add<Fault::read_as_q4_0>("mutant/cpu/q4_k_gemv/read_as_q4_0", "format guessed from the number of bytes (bugs 81, 82, 89)"),
    add<Fault::minimum_dropped>("mutant/cpu/q4_k_gemv/minimum_dropped", "dmin m is left out"),
    add<Fault::one_element_at_large>("mutant/cpu/q4_k_gemv/one_element_at_large", "y[512] is 1 too large where k > 512"),
};

}  // namespace
}  // namespace assay::mutants::q4_k_gemv_mutants
