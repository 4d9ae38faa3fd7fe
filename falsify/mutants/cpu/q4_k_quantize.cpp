// Wrong Q4_K super-blocks.
#include "ops/q4_k_quantize.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/q4_k.hpp"
#include "falsify/mutants/cpu/mutant.hpp"

namespace assay::mutants::q4_k_quantize_mutants {
namespace {

using namespace q4_k;

enum class Fault {
  halves_to_nearest, codes_to_nearest, ties_up, ties_to_even, unrounded_scale, scale_over_16, zero_in_maximum,
  padding_counted, padding_without_codes, nibbles_interleaved,
  one_scale, nan_to_zero, clamped_range, subnormals_kept, floor_of_blocks, negative_zero,
  minimum_not_decoded, first_left_out,
};

template <Fault F>
Half half_for(float factor, float reach) {
  if (F == Fault::halves_to_nearest) return to_half(reach / factor);
  const Half h = smallest_half(factor, reach);
  return F == Fault::clamped_range && h.bits == 0x7c00 ? Half{0x7bff} : h;
}

template <Fault F>
unsigned scale_for(float step, float reach) {
  if (F == Fault::codes_to_nearest && step > 0) return std::min(63U, static_cast<unsigned>(reach / step + 0.5F));
  return std::min(kLargestScale, smallest_code(step, reach));
}

template <Fault F>
unsigned code_for(float step, float v) {
  if (step > 0 && F == Fault::ties_up) return std::min(15U, static_cast<unsigned>(v / step + 0.5F));
  if (step > 0 && F == Fault::ties_to_even) return std::min(15U, static_cast<unsigned>(std::nearbyint(v / step)));
  return nearest_code(step, v);
}

template <Fault F>
void encode(const float* from, Index count, std::uint8_t* block) {
  std::fill_n(block, kBytes, std::uint8_t{0});
  const auto put = [block](Index at, Half h) {
    block[at] = static_cast<std::uint8_t>(h.bits & 255);
    block[at + 1] = static_cast<std::uint8_t>(h.bits >> 8);
  };
  float x[kValues] = {}, low[kSubBlocks], high[kSubBlocks];
  for (Index i = 0; i < (F == Fault::padding_counted ? count : kValues); ++i) {
    x[i] = from[std::min(i, count - 1)];
    if (F == Fault::nan_to_zero && std::isnan(x[i])) x[i] = 0;
    if (!std::isfinite(x[i])) return put(0, kUndefined);
    if (F != Fault::subnormals_kept && std::fabs(x[i]) < FLT_MIN) x[i] = 0;
  }
  for (Index b = 0; b < kSubBlocks; ++b) {
    const Index first = b * kSubBlock, end = first + kSubBlock, left_out = F == Fault::first_left_out ? 1 : 0;
    low[b] = std::max(0.0F, -*std::min_element(x + first + left_out, x + end));
    high[b] = *std::max_element(x + first + left_out, x + end);
    if (F == Fault::zero_in_maximum) high[b] = std::max(high[b], 0.0F);
  }
  const Half dmin = half_for<F>(kScaleReach, *std::max_element(low, low + kSubBlocks));
  if (dmin.bits == 0x7c00) return put(0, kUndefined);
  Scale scale[kSubBlocks];
  float reach[kSubBlocks], minimum[kSubBlocks];
  for (Index b = 0; b < kSubBlocks; ++b) {
    scale[b].minimum = scale_for<F>(widen(dmin), low[b]);
    minimum[b] = F == Fault::minimum_not_decoded ? low[b] : widen(dmin) * static_cast<float>(scale[b].minimum);
    reach[b] = std::max(0.0F, high[b] + minimum[b]);
  }
  const float most = *std::max_element(reach, reach + kSubBlocks);
  const Half d = half_for<F>(F == Fault::scale_over_16 ? 16 * 63 : kValueReach, most);
  if (d.bits == 0x7c00) return put(0, kUndefined);
  put(0, d);
  put(2, F == Fault::negative_zero && dmin.bits == 0 ? Half{0x8000} : dmin);
  for (Index b = 0; b < kSubBlocks; ++b) {
    scale[b].scale = scale_for<F>(15 * widen(d), F == Fault::one_scale ? most : reach[b]);
    pack(block + kPacked, b, scale[b]);
  }
  for (Index i = 0; i < (F == Fault::padding_without_codes ? count : kValues); ++i) {
    const Index b = i / kSubBlock;
    float step = widen(d) * static_cast<float>(scale[b].scale);
    if (F == Fault::unrounded_scale && scale[b].scale > 0) step = reach[b] / 15;
    const unsigned code = code_for<F>(step, x[i] + minimum[b]);
    const bool interleaved = F == Fault::nibbles_interleaved;
    std::uint8_t& pair = block[kCodes + (interleaved ? i / 2 : i / 64 * 32 + i % 32)];
    pair = static_cast<std::uint8_t>(pair | code << (interleaved ? i % 2 * 4 : i % 64 / 32 * 4));
  }
}

template <Fault F>
void mutant(const ops::Q4KQuantizeArgs& args, Device&) {
  const Index k = F == Fault::floor_of_blocks ? args.k / kValues * kValues : args.k;
  for (Index i = 0; i < args.rows; ++i)
    for (Index first = 0; first < k; first += kValues)
      encode<F>(&args.x(i, first), std::min(kValues, k - first), &args.blocks(i, first / kValues * kBytes));
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::Q4KQuantizeArgs, &mutant<F>>("q4_k_quantize", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::halves_to_nearest>("mutant/cpu/q4_k_quantize/halves_to_nearest", "d and dmin to nearest: values out of reach"),
    add<Fault::codes_to_nearest>("mutant/cpu/q4_k_quantize/codes_to_nearest", "sc and m to nearest: values out of reach"),
    add<Fault::ties_up>("mutant/cpu/q4_k_quantize/ties_up", "halfway goes to the larger code"),
    add<Fault::ties_to_even>("mutant/cpu/q4_k_quantize/ties_to_even", "halfway goes to the even code"),
    add<Fault::unrounded_scale>("mutant/cpu/q4_k_quantize/unrounded_scale", "codes by the scale before it is rounded to d sc"),
    add<Fault::minimum_not_decoded>("mutant/cpu/q4_k_quantize/minimum_not_decoded",
                                    "codes by the minimum before it is rounded to dmin m"),
    add<Fault::scale_over_16>("mutant/cpu/q4_k_quantize/scale_over_16", "16 steps for 16 codes"),
    add<Fault::zero_in_maximum>("mutant/cpu/q4_k_quantize/zero_in_maximum", "a maximum that starts at 0"),
    add<Fault::first_left_out>("mutant/cpu/q4_k_quantize/first_left_out", "minimum and maximum without the first value"),
    add<Fault::padding_counted>("mutant/cpu/q4_k_quantize/padding_counted", "zeros behind a row count as values (bug 7)"),
    add<Fault::padding_without_codes>("mutant/cpu/q4_k_quantize/padding_without_codes", "padding is left with code 0"),
    add<Fault::nibbles_interleaved>("mutant/cpu/q4_k_quantize/nibbles_interleaved",
                                    "the two nibbles of a byte are neighbours (bug 84)"),
    add<Fault::one_scale>("mutant/cpu/q4_k_quantize/one_scale", "one scale for the eight sub-blocks (bug 85)"),
    add<Fault::nan_to_zero>("mutant/cpu/q4_k_quantize/nan_to_zero", "NaN becomes 0"),
    add<Fault::clamped_range>("mutant/cpu/q4_k_quantize/clamped_range", "values out of range stop at the largest half"),
    add<Fault::subnormals_kept>("mutant/cpu/q4_k_quantize/subnormals_kept", "a subnormal x has a step of its own"),
    add<Fault::floor_of_blocks>("mutant/cpu/q4_k_quantize/floor_of_blocks", "floor instead of ceiling of k / 256 (bug 8)"),
    add<Fault::negative_zero>("mutant/cpu/q4_k_quantize/negative_zero", "dmin is -0 where no value is negative"),
};

}  // namespace
}  // namespace assay::mutants::q4_k_quantize_mutants
