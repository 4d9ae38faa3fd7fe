// Q4_K super-blocks of values on the CPU, in plain loops.
#include "ops/q4_k_quantize.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "core/q4_k.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_q4_k_quantize {
namespace {

using ops::Q4KQuantizeArgs;

/// One super-block of `count` values, padded with the last one.
void encode_plainly(const float* from, Index count, std::uint8_t* block) {
  std::fill_n(block, q4_k::kBytes, std::uint8_t{0});
  const auto put = [block](Index at, Half h) { std::memcpy(block + at, &h.bits, 2); };
  const auto at = [&](Index i) {
    const float x = from[std::min(i, count - 1)];
    return std::fabs(x) < FLT_MIN ? 0.0F : x;
  };
  float low[q4_k::kSubBlocks] = {}, reach[q4_k::kSubBlocks] = {};
  for (Index i = 0; i < q4_k::kValues; ++i) {
    if (!std::isfinite(at(i))) return put(0, q4_k::kUndefined);
    low[i / q4_k::kSubBlock] = std::max(low[i / q4_k::kSubBlock], -at(i));
  }
  const Half dmin = q4_k::smallest_half(q4_k::kScaleReach, *std::max_element(low, low + q4_k::kSubBlocks));
  if (dmin.bits == 0x7c00) return put(0, q4_k::kUndefined);
  q4_k::Scale scale[q4_k::kSubBlocks];
  for (Index b = 0; b < q4_k::kSubBlocks; ++b) {
    scale[b].minimum = q4_k::smallest_code(widen(dmin), low[b]);
    const float minimum = widen(dmin) * static_cast<float>(scale[b].minimum);
    for (Index i = b * q4_k::kSubBlock; i < (b + 1) * q4_k::kSubBlock; ++i)
      reach[b] = std::max(reach[b], at(i) + minimum);
  }
  const Half d = q4_k::smallest_half(q4_k::kValueReach, *std::max_element(reach, reach + q4_k::kSubBlocks));
  if (d.bits == 0x7c00) return put(0, q4_k::kUndefined);
  put(0, d);
  put(2, dmin);
  for (Index b = 0; b < q4_k::kSubBlocks; ++b) {
    scale[b].scale = q4_k::smallest_code(15 * widen(d), reach[b]);
    q4_k::pack(block + q4_k::kPacked, b, scale[b]);
  }
  for (Index i = 0; i < q4_k::kValues; ++i) {
    const q4_k::Line line = q4_k::line_of(block, i / q4_k::kSubBlock);
    const unsigned code = q4_k::nearest_code(line.step, at(i) + line.minimum);
    std::uint8_t& pair = block[q4_k::kCodes + i / 64 * 32 + i % 32];
    pair = static_cast<std::uint8_t>(pair | code << (i % 64 / 32 * 4));
  }
}

/// blocks = super-blocks of x
///   x (rows,k): row-major float32, any leading dimension; blocks (rows, ceil(k/256)*144): bytes, rows at multiples of
///   4;
///   blocks shares no memory with x. Bit for bit. Cost 4 + 0.5625 bytes a value.
void naive(const Q4KQuantizeArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i)
    for (Index first = 0; first < args.k; first += q4_k::kValues)
      encode_plainly(&args.x(i, first), std::min(q4_k::kValues, args.k - first),
                     &args.blocks(i, first / q4_k::kValues * q4_k::kBytes));
}

const KernelRegistration naive_kernel{
    {.id = "q4_k_quantize/cpu/naive", .summary = "a value at a time", .run = &run_typed<Q4KQuantizeArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_q4_k_quantize
