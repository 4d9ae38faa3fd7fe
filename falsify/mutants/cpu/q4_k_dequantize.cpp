// Wrong values of Q4_K super-blocks.
#include "ops/q4_k_dequantize.hpp"

#include <algorithm>
#include <cmath>

#include "core/q4_k.hpp"
#include "falsify/mutants/cpu/mutant.hpp"

namespace assay::mutants::q4_k_dequantize_mutants {
namespace {

using namespace q4_k;

enum class Fault {
  nibbles_swapped, nibbles_interleaved, shared_scales, scale_order, half_truncated, subnormals_flushed, infinity_is_65536,
  floor_of_blocks, rows_joined, read_as_q4_0, minimum_added, zeros_beyond_first, rounded_twice, ld_ignored, second_group_scales,
};

/// d sc rounded to binary16 on the way.
float through_half(float x) { return widen(to_half(x)); }

template <Fault F>
float half_value(const std::uint8_t* at) {
  const Half x = half_at(at);
  if (F == Fault::subnormals_flushed && (x.bits & 0x7c00) == 0) return std::copysign(0.0F, widen(x));
  if (F == Fault::half_truncated) return widen(BFloat16{static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(widen(x)) >> 16)});
  if (F == Fault::infinity_is_65536 && (x.bits & 0x7fff) == 0x7c00) return std::copysign(65536.0F, widen(x));
  return widen(x);
}

template <Fault F>
float value(const std::uint8_t* block, Index i) {
  Index b = i / kSubBlock;
  if (F == Fault::second_group_scales) b = i / 64 * 2;
  Scale s = unpack(block + kPacked, b);
  if (F == Fault::shared_scales) s = unpack(block + kPacked, 0);
  if (F == Fault::scale_order && b >= 4) s = {block[kPacked + 4 + b] & 63U, block[kPacked + b] & 63U};
  unsigned code = code_at(block, i);
  if (F == Fault::nibbles_swapped) code = code_at(block, i ^ 32);
  if (F == Fault::nibbles_interleaved) code = block[kCodes + i / 2] >> (i % 2 * 4) & 15U;
  float step = half_value<F>(block) * static_cast<float>(s.scale);
  const float minimum = half_value<F>(block + 2) * static_cast<float>(s.minimum);
  if (F == Fault::rounded_twice) step = through_half(step);
  const float high = step * static_cast<float>(code);
  return F == Fault::minimum_added ? high + minimum : high - minimum;
}

/// 18 bytes of 32 values: d, then 16 bytes of nibbles, q - 8.
float value_of_q4_0(const std::uint8_t* row, Index p) {
  const std::uint8_t* const block = row + p / 32 * 18;
  const unsigned pair = block[2 + p % 16];
  return widen(half_at(block)) * (static_cast<float>(p % 32 < 16 ? pair & 15U : pair >> 4U) - 8.0F);
}

template <Fault F>
void mutant(const ops::Q4KDequantizeArgs& args, Device&) {
  const Index k = F == Fault::floor_of_blocks ? args.k / kValues * kValues : args.k;
  for (Index i = 0; i < args.rows; ++i) {
    const Index start = F == Fault::rows_joined   ? i * args.k / kValues * kBytes
                        : F == Fault::ld_ignored ? i * row_bytes(args.k)
                                                 : i * args.blocks.stride(0);
    const std::uint8_t* const row = args.blocks.data() + start;
    // 144 / 256 = 18 / 32: where rows are whole super-blocks both formats have as many bytes.
    const bool other = F == Fault::read_as_q4_0 && args.k / 32 * 18 == row_bytes(args.k);
    for (Index p = 0; p < k; ++p) {
      float y = other ? value_of_q4_0(row, p) : value<F>(row + p / kValues * kBytes, p % kValues);
      if (F == Fault::zeros_beyond_first && p >= kSubBlock) y = 0;
      args.y(i, p) = y;
    }
  }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::Q4KDequantizeArgs, &mutant<F>>("q4_k_dequantize", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::nibbles_swapped>("mutant/cpu/q4_k_dequantize/nibbles_swapped", "high nibbles first (bug 83)"),
    add<Fault::nibbles_interleaved>("mutant/cpu/q4_k_dequantize/nibbles_interleaved",
                                    "the two nibbles of a byte are neighbours (bug 84)"),
    add<Fault::shared_scales>("mutant/cpu/q4_k_dequantize/shared_scales", "the first sub-block's scale for all eight (bug 85)"),
    add<Fault::scale_order>("mutant/cpu/q4_k_dequantize/scale_order",
                            "scales of sub-blocks 4 to 7 read as the first four are (bug 85)"),
    add<Fault::second_group_scales>("mutant/cpu/q4_k_dequantize/second_group_scales",
                                    "one scale for the 64 values of a group (bug 86)"),
    add<Fault::half_truncated>("mutant/cpu/q4_k_dequantize/half_truncated", "d and dmin cut to 8 bits (bug 87)"),
    add<Fault::subnormals_flushed>("mutant/cpu/q4_k_dequantize/subnormals_flushed", "subnormal d and dmin are zero (bug 87)"),
    add<Fault::infinity_is_65536>("mutant/cpu/q4_k_dequantize/infinity_is_65536", "exponent 31 decoded as a number"),
    add<Fault::floor_of_blocks>("mutant/cpu/q4_k_dequantize/floor_of_blocks", "floor instead of ceiling of k / 256 (bug 8)"),
    add<Fault::rows_joined>("mutant/cpu/q4_k_dequantize/rows_joined",
                            "a ragged row starts in the last super-block of the row before (bug 7)"),
    add<Fault::ld_ignored>("mutant/cpu/q4_k_dequantize/ld_ignored", "rows taken as dense (bug 39)"),
    add<Fault::read_as_q4_0>("mutant/cpu/q4_k_dequantize/read_as_q4_0", "format guessed from the number of bytes (bug 81)"),
    add<Fault::minimum_added>("mutant/cpu/q4_k_dequantize/minimum_added", "d sc q + dmin m"),
    add<Fault::zeros_beyond_first>("mutant/cpu/q4_k_dequantize/zeros_beyond_first", "zeros from value 32 on (bug 90)"),
    add<Fault::rounded_twice>("mutant/cpu/q4_k_dequantize/rounded_twice", "d sc is rounded to binary16 on the way"),
};

}  // namespace
}  // namespace assay::mutants::q4_k_dequantize_mutants
