// Wrong codecs of double quantization.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/nf4_absmax.hpp"
#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"
#include "ops/nf4_absmax_dequantize.hpp"
#include "ops/nf4_absmax_quantize.hpp"

namespace assay::mutants::nf4_absmax_mutants {
namespace {

enum class Decode {
  offset_left_out, group_of_64, groups_per_row, one_scale, unsigned_map, table_off_by_one, linear_map, signed_codes, first_row_only,
  f16_scale, bf16_offset, nan_swallowed, width_as_stride, last_unwritten, clipped, scale_of_last_call, offset_scaled, padding_added
};

/// Entry `code` of the map without a sign: 2^(e + 1) intervals of each decade.
float unsigned_entry(unsigned code) {
  if (code == 0 || code == 255) return code == 0 ? 0.0F : 1.0F;
  const int e = std::ilogb(static_cast<double>(code + 1)) - 1;
  const double intervals = std::ldexp(1.0, e + 1), j = code + 1 - intervals;
  return static_cast<float>(std::pow(10.0, e - 6) * (0.1 + 0.9 * (j + 0.5) / intervals));
}

template <Decode F>
float entry_of(unsigned code) {
  if (F == Decode::table_off_by_one) return kAbsmaxCode[std::min(code + 1, 255U)];
  if (F == Decode::unsigned_map) return unsigned_entry(code);
  if (F == Decode::linear_map) return (static_cast<float>(code) - 127) / 128;
  if (F == Decode::signed_codes) return kAbsmaxCode[(code + 128) % 256];
  return kAbsmaxCode[code];
}

template <Decode F>
void decode(const ops::Nf4AbsmaxDequantizeArgs& args, Device&) {
  const Index groups = args.absmax2.dim(0), last = args.n * args.b - 1;
  static float kept = args.n * args.b > 0 ? args.absmax2(0) : 1.0F;
  float behind = 0;
  if (F == Decode::padding_added)  // as a vector that runs on would
    for (Index i = last + 1; i < args.codes.dim(0); ++i) behind += kAbsmaxCode[args.codes(i)];
  for (Index j = 0; j < (F == Decode::first_row_only ? std::min<Index>(1, args.n) : args.n); ++j)
    for (Index c = 0; c < args.b; ++c) {
      const Index i = j * args.b + c;
      if (F == Decode::last_unwritten && i == last && last % 4 == 0) continue;
      Index group = i / kAbsmaxGroup;
      if (F == Decode::group_of_64) group = std::min(i / 64, groups - 1);
      if (F == Decode::groups_per_row) group = std::min(j * absmax_groups(args.b) + c / kAbsmaxGroup, groups - 1);
      if (F == Decode::one_scale) group = 0;
      float scale = F == Decode::scale_of_last_call ? kept : args.absmax2(group);
      if (F == Decode::f16_scale) scale = rounded(scale, 11);
      if (F == Decode::nan_swallowed && std::isnan(scale)) scale = 0;
      float offset = F == Decode::offset_left_out ? 0 : args.offset(0);
      if (F == Decode::bf16_offset) offset = rounded(offset, 8);
      if (F == Decode::offset_scaled) offset *= scale;
      float value = entry_of<F>(args.codes(i)) * scale + offset;
      if (F == Decode::clipped) value = std::max(value, 0.0F);
      if (F == Decode::padding_added && i == last) value += behind;
      args.absmax.data()[j * (F == Decode::width_as_stride ? args.b : args.absmax.stride(0)) + c] = value;
    }
  if (last >= 0) kept = args.absmax2(groups - 1);
}

template <Decode F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::Nf4AbsmaxDequantizeArgs, &decode<F>>("nf4_absmax_dequantize", id, fault);
}

enum class Encode {
  offset_not_subtracted, group_of_64, groups_per_row, unsigned_map, table_off_by_one, tie_goes_up, quotient_compared, garbage_in_tail,
  sum_in_order, neighbours_first, mean_of_256, third_level_lost, last_not_in_mean, divided, zero_divided, negative_kept, magnitude,
  nan_swallowed, infinity_kept, small_kept, padding_zero, tail_unwritten, width_as_stride, signed_max, mean_kept, midpoint_off,
  f16_differences, entry_below, epsilon_added
};

template <Encode F>
float value_of(float x) {
  if (F == Encode::negative_kept) return nf4_scale(x);
  if (F == Encode::magnitude) return nf4_scale(std::fabs(x));
  if (F == Encode::nan_swallowed) return std::fmax(nf4_scale(x), 0.0F);
  return absmax_value(x);
}

template <Encode F>
float sum_of(std::vector<float> terms) {
  if (F == Encode::last_not_in_mean && terms.size() > 1) terms.pop_back();
  if (F == Encode::mean_of_256 && terms.size() > 256) terms.resize(256);
  for (int level = 0; terms.size() > 1; ++level) {
    if (F == Encode::third_level_lost && level == 2) break;
    std::vector<float> sums;
    for (std::size_t first = 0; first < terms.size(); first += 256) {
      std::vector<float> group(256);
      std::copy_n(terms.begin() + static_cast<std::ptrdiff_t>(first), std::min<std::size_t>(256, terms.size() - first), group.begin());
      if (F == Encode::sum_in_order) {
        for (std::size_t i = 1; i < 256; ++i) group[0] += group[i];
      } else if (F == Encode::neighbours_first) {
        for (std::size_t width = 128; width > 0; width /= 2)
          for (std::size_t i = 0; i < width; ++i) group[i] = group[2 * i] + group[2 * i + 1];
      } else {
        for (std::size_t width = 128; width > 0; width /= 2)
          for (std::size_t i = 0; i < width; ++i) group[i] += group[i + width];
      }
      sums.push_back(group[0]);
    }
    terms.swap(sums);
  }
  return terms.empty() ? 0 : terms[0];
}

template <Encode F>
float midpoint_of(std::size_t i) {
  if (F == Encode::table_off_by_one) return kAbsmaxMidpoints[i == 0 ? 0 : i - 1];
  if (F == Encode::unsigned_map) return (unsigned_entry(static_cast<unsigned>(i)) + unsigned_entry(static_cast<unsigned>(i + 1))) / 2;
  if (F == Encode::entry_below) return kAbsmaxCode[i + 1];
  if (F == Encode::midpoint_off && i == 220) return std::nextafter(kAbsmaxMidpoints[i], 1.0F);
  return kAbsmaxMidpoints[i];
}

template <Encode F>
unsigned code_of(float difference, float scale) {
  unsigned above = 0;
  for (std::size_t i = 0; i < 255; ++i) {
    const float midpoint = midpoint_of<F>(i);
    if (F == Encode::quotient_compared || F == Encode::zero_divided) above += difference / scale > midpoint ? 1U : 0U;
    else if (F == Encode::epsilon_added) above += difference > midpoint * (scale + 1e-12F) ? 1U : 0U;
    else if (F == Encode::tie_goes_up) above += difference >= midpoint * scale ? 1U : 0U;
    else above += difference > midpoint * scale ? 1U : 0U;
  }
  return above;
}

template <Encode F>
void encode(const ops::Nf4AbsmaxQuantizeArgs& args, Device&) {
  const Index count = args.n * args.b;
  std::vector<float> values;
  for (Index j = 0; j < args.n; ++j)
    for (Index c = 0; c < args.b; ++c)
      values.push_back(value_of<F>(args.absmax.data()[j * (F == Encode::width_as_stride ? args.b : args.absmax.stride(0)) + c]));
  static float first_mean = NAN;
  const float sum = sum_of<F>(values);
  float mean = count == 0 ? 0 : absmax_offset(sum, absmax_reciprocal(count));
  if (F == Encode::divided && count > 0 && sum <= FLT_MAX) mean = nf4_scale(sum / static_cast<float>(count));
  if (F == Encode::infinity_kept && std::isinf(sum)) mean = sum;
  if (F == Encode::mean_kept) {
    if (!(std::fabs(first_mean) >= 0)) first_mean = mean;
    mean = first_mean;
  }
  args.offset(0) = mean;
  for (Index g = 0; g < absmax_groups(count); ++g) {
    const Index first = g * kAbsmaxGroup, end = std::min(count, first + kAbsmaxGroup);
    const auto difference = [&](Index i) {
      const float value = i < count ? values[static_cast<std::size_t>(i)] : 0.0F;
      const float v = F == Encode::offset_not_subtracted ? value : value - mean;
      return F == Encode::f16_differences ? rounded(v, 11) : v;
    };
    float most = 0;
    for (Index i = first; i < (F == Encode::garbage_in_tail ? first + kAbsmaxGroup : end); ++i) {
      if (F == Encode::group_of_64 && i >= first + 64) break;
      if (F == Encode::groups_per_row && i / args.b != first / args.b) break;
      const float size = F == Encode::signed_max ? difference(i) : std::fabs(difference(i));
      if (!(size <= most)) most = size;
    }
    const float scale = F == Encode::small_kept ? most : absmax_scale(most);
    args.absmax2(g) = scale;
    for (Index i = first; i < first + kAbsmaxGroup; ++i) {
      if (F == Encode::tail_unwritten && i >= end) continue;
      const bool coded = i < end && (F == Encode::zero_divided || scale > 0);
      args.codes(i) = static_cast<std::uint8_t>(coded                                        ? code_of<F>(difference(i), scale)
                                                : F == Encode::padding_zero && i >= end ? 0U
                                                                                             : unsigned{kAbsmaxZero});
    }
  }
}

template <Encode F>
KernelRegistration add_encoder(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::Nf4AbsmaxQuantizeArgs, &encode<F>>("nf4_absmax_quantize", id, fault);
}

#define DECODER(fault, says) add<Decode::fault>("mutant/cpu/nf4_absmax_dequantize/" #fault, says)
#define ENCODER(fault, says) add_encoder<Encode::fault>("mutant/cpu/nf4_absmax_quantize/" #fault, says)

const KernelRegistration registrations[] = {
    DECODER(offset_left_out, "offset is not added"),
    DECODER(offset_scaled, "offset is multiplied with the scale, too"),
    DECODER(group_of_64, "a scale for 64 elements (bug 86)"),
    DECODER(groups_per_row, "every row begins a group (bug 7)"),
    DECODER(one_scale, "the first scale for all groups (bug 85)"),
    DECODER(unsigned_map, "the map without a sign"),
    DECODER(table_off_by_one, "entry q + 1"),
    DECODER(linear_map, "(q - 127) / 128: a linear map"),
    DECODER(signed_codes, "codes read as signed bytes"),
    DECODER(first_row_only, "one row is decoded of a matrix (bug 43)"),
    DECODER(f16_scale, "the scale is held with 11 bits (bug 87)"),
    DECODER(bf16_offset, "the offset is held with 8 bits"),
    DECODER(nan_swallowed, "a NaN scale counts as 0"),
    DECODER(width_as_stride, "b used as leading dimension of absmax (bug 39)"),
    DECODER(last_unwritten, "the last element unwritten where it stands alone in its word (bug 8)"),
    DECODER(clipped, "negative results become 0, and NaN too"),
    DECODER(scale_of_last_call, "the scale is the last of the call before (bug 27)"),
    DECODER(padding_added, "codes behind the last scale are added to it"),
    ENCODER(offset_not_subtracted, "codes are of absmax, not of absmax - offset"),
    ENCODER(group_of_64, "absmax2 is the maximum of the first 64 of a group (bug 86)"),
    ENCODER(groups_per_row, "a group's maximum ends with the row in which it begins (bug 7)"),
    ENCODER(unsigned_map, "midpoints of the map without a sign"),
    ENCODER(table_off_by_one, "midpoint m - 1 for m"),
    ENCODER(tie_goes_up, "a tie takes the upper code"),
    ENCODER(quotient_compared, "(absmax - offset) / absmax2 is compared with the midpoint"),
    ENCODER(garbage_in_tail, "the maximum of a ragged group counts zeros behind its end"),
    ENCODER(sum_in_order, "the sum of a group is taken from first to last"),
    ENCODER(neighbours_first, "the tree adds neighbours first"),
    ENCODER(mean_of_256, "the mean adds the first 256 values alone"),
    ENCODER(third_level_lost, "the sum ends after two levels: 65536 values"),
    ENCODER(last_not_in_mean, "the mean leaves out the last value"),
    ENCODER(divided, "the sum is divided by n b"),
    ENCODER(zero_divided, "0 / 0 in a group of equal values"),
    ENCODER(negative_kept, "negative values are encoded like others"),
    ENCODER(magnitude, "the magnitudes of values are encoded"),
    ENCODER(nan_swallowed, "NaN and negative values count as 0"),
    ENCODER(infinity_kept, "an infinite mean is stored"),
    ENCODER(small_kept, "absmax2 below 2^-100 is kept"),
    ENCODER(padding_zero, "codes behind the last value are 0"),
    ENCODER(tail_unwritten, "codes behind the last value are unwritten"),
    ENCODER(width_as_stride, "b used as leading dimension of absmax (bug 39)"),
    ENCODER(signed_max, "the maximum is of differences, not of their magnitudes"),
    ENCODER(mean_kept, "the mean of the first call of the process is used (bug 27)"),
    ENCODER(midpoint_off, "a midpoint is one float too large"),
    ENCODER(f16_differences, "differences are held with 11 bits"),
    ENCODER(epsilon_added, "1e-12 is added to absmax2"),
    ENCODER(entry_below, "the entry below, not the nearest"),
};

}  // namespace
}  // namespace assay::mutants::nf4_absmax_mutants
