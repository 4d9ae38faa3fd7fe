// NF4 against its definitions: the codebook from quantiles of the normal distribution, as its authors compute it
// (bitsandbytes, functional.create_normal_map with offset 0.9677083: quantiles in double of levels in float32, scaled
// in float32), the codebook of its scales as in bitsandbytes (functional.create_dynamic_map, signed), and codes worked
// out by hand.
#include "core/nf4.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "core/nf4_absmax.hpp"
#include "core/q4_k.hpp"
#include "reference/nf4_absmax_dequantize.hpp"
#include "reference/nf4_absmax_quantize.hpp"
#include "reference/nf4_dequantize.hpp"
#include "reference/nf4_matmul.hpp"
#include "reference/nf4_matmul_nt.hpp"
#include "reference/nf4_quantize.hpp"

namespace assay::numbers::nf4_test {
namespace {

using Values = std::vector<double>;
View<const double> in(const Values& v, const Shape& shape) { return {v.data(), shape}; }
View<double> out(Values& v, const Shape& shape) { return {v.data(), shape}; }

/// Returns `count` levels from 0.9677083 to 1/2 inclusive, as torch.linspace computes them in float32: by steps from
/// the nearer end.
std::vector<float> levels(int count) {
  const float from = 0.9677083F, to = 0.5F, step = (to - from) / static_cast<float>(count - 1);
  std::vector<float> list;
  for (int i = 0; i < count; ++i)
    list.push_back(i < count / 2 ? from + step * static_cast<float>(i) : to - step * static_cast<float>(count - 1 - i));
  return list;
}

TEST(Nf4, TheCodebookIsThatOfNormalQuantiles) {
  const boost::math::normal normal;
  std::vector<float> values{0};
  const std::vector<float> above = levels(9), below = levels(8);
  for (std::size_t i = 0; i + 1 < above.size(); ++i)
    values.push_back(static_cast<float>(boost::math::quantile(normal, static_cast<double>(above[i]))));
  for (std::size_t i = 0; i + 1 < below.size(); ++i)
    values.push_back(static_cast<float>(-boost::math::quantile(normal, static_cast<double>(below[i]))));
  std::ranges::sort(values);
  ASSERT_EQ(values.size(), kNf4.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(kNf4[i], values[i] / values.back()) << "entry " << i;
}

/// Constant evaluation agrees with evaluation at run time: tables, and the number of blocks of a row.
TEST(Nf4, TablesAreTheSameWhenTheyAreComputedAgain) {
  EXPECT_EQ(nf4_midpoints(), kNf4Midpoints);
  EXPECT_EQ(absmax_entries(), kAbsmaxCode);
  EXPECT_EQ(absmax_midpoints(), kAbsmaxMidpoints);
  for (Index length = 0; length < 700; ++length) {
    Index blocks = 0, groups = 0;
    while (blocks * 64 < length) ++blocks;
    while (groups * 256 < length) ++groups;
    EXPECT_EQ(nf4_blocks(length), blocks) << length;
    EXPECT_EQ(absmax_groups(length), groups) << length;
    EXPECT_EQ(q4_k::blocks_of(length), groups) << length;
  }
}

TEST(Nf4, MidpointsAreThePublishedOnes) {
  // From dQuantizeNF4 of bitsandbytes (csrc/kernels.cu), in ascending order.
  constexpr float kPublished[] = {
      -0.8480964004993439F,  -0.6106329262256622F,   -0.4599952697753906F, -0.33967943489551544F, -0.23460740596055984F,
      -0.13791173323988914F, -0.045525018125772476F, 0.03979014977812767F, 0.1202552504837513F,   0.2035212516784668F,
      0.2920137718319893F,   0.3893125355243683F,    0.5016634166240692F,  0.6427869200706482F,   0.8614784181118011F};
  for (std::size_t i = 0; i < kNf4Midpoints.size(); ++i) {
    // Some midpoints are halfway between two floats, and the published digits round the other way: both are equally
    // near.
    const double midpoint = (static_cast<double>(kNf4[i]) + static_cast<double>(kNf4[i + 1])) / 2;
    EXPECT_EQ(std::fabs(kNf4Midpoints[i] - midpoint), std::fabs(kPublished[i] - midpoint)) << "midpoint " << i;
  }
}

/// Two rows of 65 columns: rows share no block, and element 64 gets its own block.
TEST(Nf4, CodesByHand) {
  Values x(2 * 65);
  x[0] = -4, x[1] = 4, x[2] = 1, x[3] = -1, x[4] = 0.15, x[5] = 0.16;  // of 4: -1, 1, 0.25, -0.25, 0.0375, 0.04
  x[64] = -0.5;
  x[65] = 0.001, x[66] = -0.0007;  // of 0.001: 1, -0.7
  x[129] = std::numeric_limits<double>::infinity();
  Values codes(2 * 64, 99), absmax(2 * 2, 99);
  reference::nf4_quantize<double>(in(x, {2, 65}), out(codes, {2, 64}), out(absmax, {2, 2}));
  Values want(2 * 64, 0x77);
  want[0] = 0x0f;         // -1, 1
  want[1] = 10 * 16 + 4;  // 0.246, -0.284: 0.25 is below 0.292, -0.25 below -0.2346
  want[2] = 7 * 16 + 8;   // the midpoint 0.03979 separates the two
  want[32] = 0x07;
  want[64] = 0xf1;  // 1, -0.696
  EXPECT_EQ(codes, want);
  EXPECT_EQ(absmax[0], 4);
  EXPECT_EQ(absmax[1], 0.5);
  EXPECT_EQ(absmax[2], 0.001F);
  EXPECT_TRUE(std::isnan(absmax[3]));
}

TEST(Nf4, TheLargestNumberIsAScaleAndInfinityIsNone) {
  std::vector<double> x(64, 1), codes(32), absmax(1);
  x[5] = FLT_MAX;
  reference::nf4_quantize<double>(in(x, {1, 64}), out(codes, {1, 32}), out(absmax, {1, 1}));
  EXPECT_EQ(absmax[0], FLT_MAX);
  x[5] = -std::numeric_limits<double>::infinity();
  reference::nf4_quantize<double>(in(x, {1, 64}), out(codes, {1, 32}), out(absmax, {1, 1}));
  EXPECT_TRUE(std::isnan(absmax[0]));
}

TEST(Nf4, DecodedAndMultipliedByHand) {
  // W = [2, -2 0.6961928, 0 | 0 ..] in its first row, [-0.5 .., .. | 3] in its second; 65 columns.
  Values codes(2 * 64, 0x77);
  codes[0] = 0xf1;
  codes[64] = 0x07;
  codes[64 + 32] = 0xf7;
  const Values absmax{2, 7, 0.5, 3};
  const Shape matrix{2, 65}, packed{2, 64}, blocks{2, 2};
  Values w(2 * 65, 99);
  reference::nf4_dequantize<double>(in(codes, packed), in(absmax, blocks), out(w, matrix));
  Values want(2 * 65);
  want[0] = 2, want[1] = -2 * static_cast<double>(0.6961928009986877F);
  want[65] = -0.5, want[129] = 3;
  EXPECT_EQ(w, want);

  Values x(65), y(2), dx(65);
  x[0] = 3, x[1] = 10, x[64] = 100;
  reference::nf4_matmul_nt<double>(in(x, {1, 65}), in(codes, packed), in(absmax, blocks), out(y, {1, 2}));
  EXPECT_EQ(y, (Values{6 + 10 * want[1], -1.5 + 300}));
  const Values dy{10, 4};
  reference::nf4_matmul<double>(in(dy, {1, 2}), in(codes, packed), in(absmax, blocks), out(dx, {1, 65}));
  Values gradient(65);
  gradient[0] = 20 - 2, gradient[1] = 10 * want[1], gradient[64] = 12;
  EXPECT_EQ(dx, gradient);
}

/// Returns the means of neighbouring levels among `count` + 1 from 0.1 to 1, as torch.linspace computes them in
/// float32, times 10^exponent, as create_dynamic_map does for each decade.
std::vector<float> means_of_decade(int count, int exponent) {
  const float step = (1.0F - 0.1F) / static_cast<float>(count);
  const auto level = [&](int i) {
    return i < (count + 1) / 2 ? 0.1F + step * static_cast<float>(i) : 1.0F - step * static_cast<float>(count - i);
  };
  std::vector<float> means;
  for (int i = 0; i < count; ++i)
    means.push_back(static_cast<float>(std::pow(10.0, exponent)) * ((level(i) + level(i + 1)) / 2));
  return means;
}

/// bitsandbytes rounds levels, means and products to float32; our entries are rounded once, and the two agree within 4
/// floats.
TEST(Nf4Absmax, TheCodebookIsTheSignedDynamicMap) {
  std::vector<float> map{0, 1};
  for (int e = 0; e < 7; ++e)
    for (const float mean : means_of_decade(1 << e, e - 6)) map.insert(map.end(), {mean, -mean});
  std::ranges::sort(map);
  ASSERT_EQ(map.size(), kAbsmaxCode.size());
  for (std::size_t i = 0; i < map.size(); ++i)
    EXPECT_NEAR(kAbsmaxCode[i], map[i], 0x1p-22 * std::fabs(map[i])) << "entry " << i;
  // Values as printed by bitsandbytes.
  EXPECT_EQ(kAbsmaxCode[0], -0.992968738079071F);
  EXPECT_EQ(kAbsmaxCode[127], 0);
  EXPECT_EQ(kAbsmaxCode[255], 1);
}

/// Entries are the floats nearest to 10^(e-6) (0.1 + 0.9 (j + 1/2) / 2^e), computed by hand.
TEST(Nf4Absmax, EntriesAreRoundedOnce) {
  EXPECT_EQ(kAbsmaxCode[128], 5.5e-7F);
  EXPECT_EQ(kAbsmaxCode[129], 3.25e-6F);
  EXPECT_EQ(kAbsmaxCode[130], 7.75e-6F);
  EXPECT_EQ(kAbsmaxCode[126], -5.5e-7F);
  EXPECT_EQ(kAbsmaxCode[191], 0.10703125F);
  EXPECT_EQ(kAbsmaxCode[254], 0.99296875F);
  std::size_t code = kAbsmaxZero + 1;
  for (int e = 0; e < 7; ++e)
    for (int j = 0; j < 1 << e; ++j, ++code) {
      const long double exact = std::pow(10.0L, e - 6) * (0.1L + 0.9L * (j + 0.5L) / std::ldexp(1.0L, e));
      EXPECT_EQ(kAbsmaxCode[code], static_cast<float>(exact)) << "entry " << code;
      EXPECT_EQ(kAbsmaxCode[254 - code], -kAbsmaxCode[code]);
    }
}

/// 1 to 6 around their mean 3.5: -1, -0.6, -0.2, 0.2, 0.6, 1 times 2.5. 0.2 is in interval 7 of the 64 from 0.1 to 1,
/// 0.6 in interval 35; -1 has no code, and 0 is the nearest.
TEST(Nf4Absmax, CodesByHand) {
  const Values absmax{1, 2, 3, 4, 5, 6};
  Values codes(256, 99), absmax2(1, 99), offset(1, 99);
  reference::nf4_absmax_quantize<double>(in(absmax, {2, 3}), out(codes, {256}), out(absmax2, {1}), out(offset, {1}));
  Values want(256, 127);
  want[0] = 0, want[1] = 254 - (127 + 64 + 35), want[2] = 254 - (127 + 64 + 7);
  want[3] = 127 + 64 + 7, want[4] = 127 + 64 + 35, want[5] = 255;
  EXPECT_EQ(codes, want);
  EXPECT_EQ(absmax2[0], 2.5);
  EXPECT_EQ(offset[0], 3.5);

  Values decoded(6, 99);
  reference::nf4_absmax_dequantize<double>(in(codes, {256}), in(absmax2, {1}), in(offset, {1}), out(decoded, {2, 3}));
  const double fifth = 0.1 + 0.9 * 7.5 / 64, three_fifths = 0.1 + 0.9 * 35.5 / 64, most = 0.1 + 0.9 * 63.5 / 64;
  const Values back{3.5 - 2.5 * most,  3.5 - 2.5 * three_fifths, 3.5 - 2.5 * fifth,
                    3.5 + 2.5 * fifth, 3.5 + 2.5 * three_fifths, 6};
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(decoded[i], back[i], 1e-6) << i;
}

/// 3 rows of 100: row 2 spans both groups, and 44 scales remain for the second. All are 2 except one per group, 0 and
/// 4.
TEST(Nf4Absmax, GroupsRunOverRows) {
  Values absmax(300, 2);
  absmax[255] = 0, absmax[256] = 4;
  Values codes(512, 99), absmax2(2, 99), offset(1, 99);
  reference::nf4_absmax_quantize<double>(in(absmax, {3, 100}), out(codes, {512}), out(absmax2, {2}), out(offset, {1}));
  Values want(512, 127);
  want[255] = 0, want[256] = 255;
  EXPECT_EQ(codes, want);
  EXPECT_EQ(offset[0], 2);
  EXPECT_EQ(absmax2, (Values{2, 2}));

  absmax[299] = -1;
  reference::nf4_absmax_quantize<double>(in(absmax, {3, 100}), out(codes, {512}), out(absmax2, {2}), out(offset, {1}));
  EXPECT_TRUE(std::isnan(offset[0]) && std::isnan(absmax2[0]) && std::isnan(absmax2[1]));
  EXPECT_EQ(codes, Values(512, 127));
}

TEST(Nf4Absmax, ASumOfNoTermsIsZero) {
  EXPECT_EQ(reference::nf4_absmax_sum({}), 0);
  EXPECT_EQ(reference::nf4_absmax_sum({3}), 3);
}

}  // namespace
}  // namespace assay::numbers::nf4_test
