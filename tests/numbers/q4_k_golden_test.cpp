// Q4_K super-blocks worked out by hand from the format's definition (ggml, block_q4_K and get_scale_min_k4), and a
// comparison of this repository's two descriptions of the format, in the references and in core/q4_k.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <random>
#include <vector>

#include "contract/certificates/q4_k_quantize.hpp"
#include "core/q4_k.hpp"
#include "reference/q4_k_dequantize.hpp"
#include "reference/q4_k_gemv.hpp"
#include "reference/q4_k_quantize.hpp"

namespace assay::numbers::q4_k_golden_test {
namespace {

using Values = std::vector<double>;

/// d = 1 (0x3c00), dmin = 1/2 (0x3800). Scales 1, 2, 3, 4, 17, 34, 51, 63 and minima 5, 6, 7, 8, 16, 33, 50, 62.
///   bytes 0..3:  sc 1..4 with the top bits of 17, 34, 51, 63: 1 | 1<<6, 2 | 2<<6, 3 | 3<<6, 4 | 3<<6
///   bytes 4..7:  m 5..8 with those of 16, 33, 50, 62: 5 | 1<<6, 6 | 2<<6, 7 | 3<<6, 8 | 3<<6
///   bytes 8..11: low four bits: 1 | 0<<4, 2 | 1<<4, 3 | 2<<4, 15 | 14<<4
Values block_by_hand() {
  Values bytes(144, 0);
  const int head[] = {0x00, 0x3c, 0x00, 0x38, 0x41, 0x82, 0xc3, 0xc4, 0x45, 0x86, 0xc7, 0xc8, 0x01, 0x12, 0x23, 0xef};
  for (std::size_t i = 0; i < 16; ++i) bytes[i] = head[i];
  bytes[16] = 0x21;       // value 0: code 1; value 32: code 2
  bytes[16 + 31] = 0xf0;  // value 31: 0; value 63: 15
  bytes[16 + 96] = 0x5a;  // value 192: 10; value 224: 5
  return bytes;
}

Values decoded(const Values& bytes, Index k) {
  Values y(static_cast<std::size_t>(k));
  reference::q4_k_dequantize<double>(View<const double>(bytes.data(), {1, static_cast<Index>(bytes.size())}),
                                     View<double>(y.data(), {1, k}));
  return y;
}

TEST(GoldenQ4K, ValuesByHand) {
  const Values y = decoded(block_by_hand(), 256);
  EXPECT_EQ(y[0], 1 * 1 - 2.5);
  EXPECT_EQ(y[1], -2.5);
  EXPECT_EQ(y[31], -2.5);
  EXPECT_EQ(y[32], 2 * 2 - 3.0);
  EXPECT_EQ(y[63], 2 * 15 - 3.0);
  EXPECT_EQ(y[64], -3.5);
  EXPECT_EQ(y[96], -4.0);
  EXPECT_EQ(y[128], -8.0);
  EXPECT_EQ(y[160], -16.5);
  EXPECT_EQ(y[192], 51 * 10 - 25.0);
  EXPECT_EQ(y[224], 63 * 5 - 31.0);
  EXPECT_EQ(y[255], -31.0);
}

TEST(GoldenQ4K, ProductByHand) {
  const Values bytes = block_by_hand();
  Values x(193, 0), y(1);
  x[0] = 2, x[32] = 3, x[192] = -1;
  reference::q4_k_gemv<double>(View<const double>(bytes.data(), {1, 144}), View<const double>(x.data(), {193}),
                               View<double>(y.data(), {1}));
  EXPECT_EQ(y[0], 2 * -1.5 + 3 * 1.0 - 485.0);
}

// The three formulas covered by the bound of a product are the same number. A wrong formula would add its distance to
// the bound, about 2^10 times the bound of 400 terms; the roundings of correct formulas add as much again for each of
// their few operations.
TEST(GoldenQ4K, TheFormulasOfAProductAgree) {
  Values bytes = block_by_hand();
  const Values other = bytes;
  bytes.insert(bytes.end(), other.begin(), other.end());
  std::vector<Bounded> blocks, x, y(1);
  for (double b : bytes) blocks.emplace_back(b);
  std::mt19937 random(1);
  for (int p = 0; p < 400; ++p) x.push_back(Bounded::input(std::normal_distribution<float>()(random)));
  const View<const Bounded> held(blocks.data(), {1, 288});
  reference::q4_k_gemv<Bounded>(held, View<const Bounded>(x.data(), {400}), View<Bounded>(y.data(), {1}));
  Sum<Bounded> plain;
  for (Index p = 0; p < 400; ++p) plain += Bounded(reference::q4_k_value(held, 0, p)) * x[static_cast<std::size_t>(p)];
  EXPECT_EQ(y[0].value, plain.value().value);
  EXPECT_GE(y[0].error, plain.value().error);
  EXPECT_LE(y[0].error, 8 * plain.value().error);
}

/// Sub-block 0: -63, -62, .., -32, and 0 .. 30 in the next: dmin = 1, m = 63 and 0; reach 31 and 30, d the smallest
/// half of which 945 reach 31: 31 / 945 = 0.0328042.. lies between 1074 and 1075 times 2^-15, so 1075 * 2^-15 (0x2833).
/// 15 d = 0.49209.., and 63 of it reach 31 (31.0017); 61 reach 30 (30.0175), 60 do not (29.525).
TEST(GoldenQ4K, BlockByHand) {
  Values x(64), bytes(144);
  for (int i = 0; i < 32; ++i)
    x[static_cast<std::size_t>(i)] = i - 63, x[static_cast<std::size_t>(32 + i)] = std::min(i, 30);
  reference::q4_k_quantize<double>(View<const double>(x.data(), {1, 64}), View<double>(bytes.data(), {1, 144}));
  EXPECT_EQ(bytes[0], 0x33);
  EXPECT_EQ(bytes[1], 0x28);
  EXPECT_EQ(bytes[2], 0x00);
  EXPECT_EQ(bytes[3], 0x3c);
  EXPECT_EQ(static_cast<int>(bytes[4]) & 63, 63);
  EXPECT_EQ(static_cast<int>(bytes[5]) & 63, 61);
  EXPECT_EQ(static_cast<int>(bytes[8]) & 63, 63);
  EXPECT_EQ(static_cast<int>(bytes[9]) & 63, 0);
  EXPECT_EQ(bytes[16], 0x00);       // -63 and 0: code 0
  EXPECT_EQ(bytes[16 + 31], 0xff);  // -32 and 30: code 15
  EXPECT_EQ(bytes[16 + 1], 0x00);   // -62: 1 / 2.0667 is below a half; 1 / 2.0012 too: 0.4997
  EXPECT_EQ(bytes[16 + 2], 0x11);   // 2 / 2.0667, 2 / 2.0012: 1
}

TEST(GoldenQ4K, TwoDescriptionsAgree) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint8_t> bytes(144);
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random());
    bytes[1] &= 0xbb, bytes[3] &= 0xbb;  // finite
    const Values y = decoded(Values(bytes.begin(), bytes.end()), 256);
    for (Index i = 0; i < 256; ++i) ASSERT_EQ(y[static_cast<std::size_t>(i)], q4_k::value_at(bytes.data(), i)) << i;
    std::uint8_t packed[12] = {};
    for (Index b = 0; b < 8; ++b) q4_k::pack(packed, b, q4_k::unpack(bytes.data() + 4, b));
    for (std::size_t n = 0; n < 12; ++n) ASSERT_EQ(packed[n], bytes[4 + n]);
  }
}

/// Quotients are approximate, but correction finds the same halves and codes as comparison.
TEST(GoldenQ4K, CorrectedQuotientsAreTheOnesOfTheDefinition) {
  std::mt19937 random(8);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (unsigned bits = 0; bits < 0x7c00; ++bits)
    for (const float factor : {63.0F, 945.0F}) {
      const float exact = factor * widen(Half{static_cast<std::uint16_t>(bits)});
      for (const float reach : {std::nextafter(exact, 0.0F), exact, std::nextafter(exact, INFINITY)})
        ASSERT_EQ(q4_k::smallest_half(factor, reach).bits, reference::q4_k_smallest_half(factor, reach).bits) << bits;
    }
  for (int round = 0; round < 20000; ++round) {
    const float step =
        widen(Half{static_cast<std::uint16_t>(1 + random() % 0x7bff)}) * static_cast<float>(1 + random() % 63);
    const float half_steps = static_cast<float>(random() % 31) * step / 2;
    const float below = std::nextafter(half_steps, 0.0F), above = std::nextafter(half_steps, INFINITY);
    for (const float v : {half_steps, below, above, 15 * step * uniform(random)}) {
      unsigned code = 0;
      while (code < 15 && static_cast<float>(2 * code + 1) * step < 2 * v) ++code;
      ASSERT_EQ(q4_k::nearest_code(step, v), code) << step << ' ' << v;
    }
    const float reach = static_cast<float>(random() % 64) * step;
    for (const float r : {reach, std::nextafter(reach, 0.0F)})
      ASSERT_EQ(q4_k::smallest_code(step, r), reference::q4_k_smallest_code(step, r)) << step << ' ' << r;
  }
}

/// A code off by one is off by a whole step: the certificate detects it at any position.
TEST(GoldenQ4K, TheCertificateSeesACodeOneOff) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  std::vector<float> x(300);
  for (float& v : x) v = normal(random);
  Values wide(x.begin(), x.end()), bytes(288);
  reference::q4_k_quantize<double>(View<const double>(wide.data(), {1, 300}), View<double>(bytes.data(), {1, 288}));
  std::vector<std::uint8_t> blocks(bytes.begin(), bytes.end());
  const auto holds = [&] {
    return contract::q4_k_round_trip({x.data(), {1, 300}}, View<const std::uint8_t>(blocks.data(), {1, 288})).holds;
  };
  EXPECT_TRUE(holds());
  for (Index i = 0; i < 300; ++i) {
    std::uint8_t& pair = blocks[static_cast<std::size_t>(i / 256 * 144 + 16 + i % 256 / 64 * 32 + i % 32)];
    const std::uint8_t right = pair;
    const int shift = i % 64 < 32 ? 0 : 4, code = right >> shift & 15, other = code == 0 ? 1 : code - 1;
    pair = static_cast<std::uint8_t>((right & ~(15 << shift)) | other << shift);
    EXPECT_FALSE(holds()) << i;
    pair = right;
  }
  EXPECT_TRUE(holds());
  blocks[0] = 0, blocks[1] = 0x7e;
  EXPECT_FALSE(holds());
}

/// A block is undefined only if no half reaches its values: 63 dmin below zero, 945 d above the minimum.
TEST(GoldenQ4K, OnlyWhatNoHalfReachesIsUndefined) {
  std::vector<std::uint8_t> undefined(144, 0);
  undefined[1] = 0x7e;
  const auto may_be_undefined = [&](float first, float second) {
    std::vector<float> x(256, 0);
    x[0] = first, x[255] = second;
    return contract::q4_k_round_trip({x.data(), {1, 256}}, View<const std::uint8_t>(undefined.data(), {1, 144})).holds;
  };
  constexpr float kLow = 63.0F * 65504, kHigh = 945.0F * 65504;
  EXPECT_FALSE(may_be_undefined(0, kHigh * 0.999F)) << "whatever is above 0 is no minimum";
  EXPECT_TRUE(may_be_undefined(0, kHigh * 1.001F));
  EXPECT_FALSE(may_be_undefined(-kLow * 0.999F, 0));
  EXPECT_TRUE(may_be_undefined(-kLow * 1.001F, 0));
  // The minimum, rounded up by at most a 63rd of itself, adds to the range that d has to reach.
  EXPECT_FALSE(may_be_undefined(-4e6F, kHigh - 4e6F * (1 + 1.1F / 63)));
  EXPECT_TRUE(may_be_undefined(-4e6F, kHigh - 4e6F * (1 + 0.5F / 63)));
  // Exact to the last float: 63 65504 (1 + (1 + 2^-10) / 63) + 2^-24 is 4192319.97, and 945 65504 / (1 + 2^-23) less
  // that is 57708952.65.
  EXPECT_FALSE(may_be_undefined(-kLow, 57708952.0F));
  EXPECT_TRUE(may_be_undefined(-kLow, std::nextafter(57708952.0F, INFINITY)));
  EXPECT_TRUE(may_be_undefined(NAN, 0));
}

/// Encodes a super-block by the functions of core/q4_k.hpp.
std::vector<unsigned> encoded_by_parts(const float (&x)[256]) {
  std::uint8_t bytes[144] = {};
  float lowest[8], reach[8], least = 0, most = 0;
  for (Index b = 0; b < 8; ++b) {
    lowest[b] = std::min(0.0F, *std::min_element(x + 32 * b, x + 32 * b + 32));
    least = std::min(least, lowest[b]);
  }
  const Half dmin = q4_k::smallest_half(q4_k::kScaleReach, std::max(0.0F, -least));
  q4_k::Scale scales[8] = {};
  for (std::size_t b = 0; b < 8; ++b) {
    scales[b].minimum = q4_k::smallest_code(widen(dmin), -lowest[b]);
    reach[b] = *std::max_element(x + 32 * b, x + 32 * b + 32) + widen(dmin) * static_cast<float>(scales[b].minimum);
    most = std::max(most, reach[b]);
  }
  const Half d = q4_k::smallest_half(q4_k::kValueReach, most);
  if (dmin.bits == 0x7c00 || d.bits == 0x7c00) {
    bytes[0] = q4_k::kUndefined.bits & 255U, bytes[1] = q4_k::kUndefined.bits >> 8U;
    return {bytes, bytes + 144};
  }
  bytes[0] = d.bits & 255U, bytes[1] = static_cast<std::uint8_t>(d.bits >> 8U);
  bytes[2] = dmin.bits & 255U, bytes[3] = static_cast<std::uint8_t>(dmin.bits >> 8U);
  for (std::size_t b = 0; b < 8; ++b) {
    scales[b].scale = q4_k::smallest_code(15 * widen(d), reach[b]);
    q4_k::pack(bytes + q4_k::kPacked, static_cast<Index>(b), scales[b]);
    for (std::size_t i = 32 * b; i < 32 * b + 32; ++i) {
      const float minimum = widen(dmin) * static_cast<float>(scales[b].minimum);
      const unsigned code = q4_k::nearest_code(widen(d) * static_cast<float>(scales[b].scale), x[i] + minimum);
      std::uint8_t& pair = bytes[16 + i / 64 * 32 + i % 32];
      pair = static_cast<std::uint8_t>(pair | code << (i / 32 % 2 * 4));
    }
  }
  return {bytes, bytes + 144};
}

TEST(GoldenQ4K, TwoDescriptionsOfTheEncoderAgree) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  int defined = 0, undefined = 0;
  for (int round = 0; round < 1200; ++round) {
    float x[256];
    const int kind = round % 6, exponent = static_cast<int>(random() % 56) - 30;  // up to values that no half reaches
    for (std::size_t i = 0; i < 256; ++i) {
      const float v = std::ldexp(normal(random), exponent);
      x[i] = kind == 0   ? v
             : kind == 1 ? std::fabs(v)
             : kind == 2 ? -std::fabs(v)
             : kind == 3 ? (i / 32 % 3 == 0 ? 0 : v)
             // Including halves of codes.
             : kind == 4 ? std::ldexp(static_cast<float>(static_cast<int>(random() % 95) - 31), exponent)
                         : std::ldexp(v, -static_cast<int>(i / 32) * 3);
    }
    unsigned bytes[144] = {};
    reference::q4_k_encode(x, bytes);
    const std::vector<unsigned> found(bytes, bytes + 144);
    ASSERT_EQ(found, encoded_by_parts(x)) << round;
    (bytes[0] == 0 && bytes[1] == 0x7e ? undefined : defined) += 1;
  }
  EXPECT_GT(defined, 500);
  EXPECT_GT(undefined, 20);
}

/// Ties take the smaller code; without a step the code is 0.
TEST(GoldenQ4K, CodesAtTheEndsOfTheirRange) {
  EXPECT_EQ(q4_k::nearest_code(0, 0), 0U);
  EXPECT_EQ(q4_k::nearest_code(0, 1), 0U);
  EXPECT_EQ(q4_k::nearest_code(1, 0), 0U);
  EXPECT_EQ(q4_k::nearest_code(1, 0.5F), 0U);
  EXPECT_EQ(q4_k::nearest_code(1, 14.5F), 14U);
  EXPECT_EQ(q4_k::nearest_code(1, std::nextafter(14.5F, 15.0F)), 15U);
  EXPECT_EQ(q4_k::nearest_code(1, 15), 15U);
  EXPECT_EQ(q4_k::nearest_code(1, 15.4F), 15U);
  EXPECT_EQ(q4_k::nearest_code(1, 100), 15U);
  EXPECT_EQ(q4_k::smallest_code(0, 0), 0U);
  EXPECT_EQ(q4_k::smallest_code(1, 0), 0U);
  EXPECT_EQ(q4_k::smallest_code(1, -1), 0U);
  EXPECT_EQ(q4_k::smallest_code(1, std::nextafter(0.0F, 1.0F)), 1U);
  EXPECT_EQ(q4_k::smallest_code(1, 62), 62U);
  EXPECT_EQ(q4_k::smallest_code(1, std::nextafter(62.0F, 63.0F)), 63U);
  EXPECT_EQ(q4_k::smallest_code(1, 63), 63U);
  EXPECT_EQ(q4_k::smallest_half(63, 0).bits, 0);
  EXPECT_EQ(q4_k::smallest_half(63, FLT_MIN).bits, 1);
  EXPECT_EQ(q4_k::smallest_half(945, FLT_MAX).bits, 0x7c00);
  EXPECT_EQ(q4_k::blocks_of(0), 0);
  EXPECT_EQ(q4_k::blocks_of(1), 1);
  EXPECT_EQ(q4_k::blocks_of(256), 1);
  EXPECT_EQ(q4_k::blocks_of(257), 2);
  EXPECT_EQ(q4_k::row_bytes(257), 288);
}

/// The smallest normal number counts, the largest subnormal does not; NaN and infinities make a block undefined.
TEST(GoldenQ4K, SubnormalValuesAreZero) {
  const auto head = [](double value) {
    Values x(40, 0), bytes(144, 1);
    x[33] = value;
    reference::q4_k_quantize<double>(View<const double>(x.data(), {1, 40}), View<double>(bytes.data(), {1, 144}));
    return Values(bytes.begin(), bytes.begin() + 4);
  };
  constexpr double kNormal = FLT_MIN, kSubnormal = 0x1.fffffcp-127;
  EXPECT_EQ(head(kNormal), (Values{1, 0, 0, 0}));
  EXPECT_EQ(head(kSubnormal), (Values{0, 0, 0, 0}));
  EXPECT_EQ(head(-kNormal), (Values{1, 0, 1, 0})) << "the step of the minima, and what zero is above them";
  EXPECT_EQ(head(-kSubnormal), (Values{0, 0, 0, 0}));
  for (const double value : {double{NAN}, double{INFINITY}, -double{INFINITY}})
    EXPECT_EQ(head(value), (Values{0, 0x7e, 0, 0})) << value;
}

/// Each super-block of a row of more than 256 super-blocks depends on its own values only; the last one is padded with
/// the last value.
TEST(GoldenQ4K, EverySuperBlockOfALongRowHasItsPlace) {
  constexpr Index kBlocks = 259, kWidth = (kBlocks - 1) * 256 + 3;
  Values x(kWidth), bytes(kBlocks * 144, -1);
  for (std::size_t p = 0; p < x.size(); ++p)
    x[p] = p % 7 == 0 ? static_cast<double>(p / 256 + 1) : -static_cast<double>(p % 5);
  reference::q4_k_quantize<double>(View<const double>(x.data(), {1, kWidth}),
                                   View<double>(bytes.data(), {1, kBlocks * 144}));
  for (std::size_t b = 0; b < kBlocks; ++b) {
    float own[256];
    for (std::size_t i = 0; i < 256; ++i) own[i] = static_cast<float>(x[std::min(b * 256 + i, x.size() - 1)]);
    unsigned want[144] = {};
    reference::q4_k_encode(own, want);
    for (std::size_t n = 0; n < 144; ++n)
      ASSERT_EQ(bytes[b * 144 + n], want[n]) << "byte " << n << " of super-block " << b;
  }
  Values decoded(kWidth);
  reference::q4_k_dequantize<double>(View<const double>(bytes.data(), {1, kBlocks * 144}),
                                     View<double>(decoded.data(), {1, kWidth}));
  for (std::size_t p = 0; p < x.size(); ++p)  // a step, twice the largest error
    ASSERT_NEAR(decoded[p], x[p], 1 + static_cast<double>(p / 256 + 5) / 15) << p;
}

/// The largest half is a valid scale; a larger scale makes the whole super-block undefined.
TEST(Q4KGolden, ScalesReachTheLargestHalfAndNoFurther) {
  const auto head = [](float largest, float smallest) {
    float x[256] = {};
    unsigned bytes[144] = {};
    x[0] = largest, x[255] = smallest;
    reference::q4_k_encode(x, bytes);
    return std::vector<unsigned>(bytes, bytes + 4);
  };
  using Head = std::vector<unsigned>;
  constexpr float kLargest = 15 * 63 * 65504.0F, kLowest = -63 * 65504.0F;  // floats
  EXPECT_EQ(head(kLargest, 0), (Head{0xff, 0x7b, 0, 0}));
  EXPECT_EQ(head(std::nextafter(kLargest, 2 * kLargest), 0), (Head{0, 0x7e, 0, 0}));
  const Head lowest = head(0, kLowest);
  EXPECT_EQ(lowest[2], 0xffU);
  EXPECT_EQ(lowest[3], 0x7bU);
  EXPECT_EQ(head(0, std::nextafter(kLowest, 2 * kLowest)), (Head{0, 0x7e, 0, 0}));
}

/// Reaches of zero or below, and NaN, need code 0 with any step; no half reaches infinity or NaN.
TEST(GoldenQ4K, ReachesThatAreNoneNeedNothing) {
  for (const float step : {0x1p-24F, 0.125F, 1.0F, 15 * 65504.0F})
    for (const float reach : {0.0F, -0.0F, -0x1p-149F, -0.25F, -0.5F, -0.999F, -1.0F, -FLT_MAX, NAN})
      EXPECT_EQ(q4_k::smallest_code(step, reach), 0U) << step << ' ' << reach;
  for (const float reach : {INFINITY, NAN}) EXPECT_EQ(reference::q4_k_smallest_half(63, reach).bits, 0x7c00) << reach;
}

/// -1 in a sub-block of step 16383 * 2^-23 with minimum 1 - 2^-10 is off by 2^-10, which equals half a step plus 2^-24,
/// a rounding of numbers near 1.
TEST(GoldenQ4K, WhatIsAsFarAsTheBoundIsWithinIt) {
  std::vector<std::uint8_t> block(144, 0);
  block[0] = 762 & 255, block[1] = 762 >> 8;  // d = 762 * 2^-24
  block[2] = 0xfe, block[3] = 0x3b;           // dmin = 1 - 2^-10
  block[4] = 43, block[8] = 1;                // 381 * 43 = 16383
  ASSERT_EQ(q4_k::line_of(block.data(), 0).step, 16383 * 0x1p-23F);
  ASSERT_EQ(q4_k::value_at(block.data(), 0), -(1 - 0x1p-10F));
  const auto holds = [&](float x) {
    return contract::q4_k_round_trip({&x, {1, 1}}, View<const std::uint8_t>(block.data(), {1, 144})).holds;
  };
  EXPECT_TRUE(holds(-1));
  EXPECT_FALSE(holds(std::nextafter(-1.0F, -2.0F)));
}

/// Sub-blocks past the row's end take no part: 0 times an infinite step would be NaN.
TEST(GoldenQ4K, AProductEndsWithItsRow) {
  Values bytes(144, 0);
  bytes[1] = 0x7c;  // d is infinite
  bytes[4] = 1, bytes[16] = 1;
  std::vector<Bounded> blocks, x{Bounded(2.0)}, y(1);
  for (const double b : bytes) blocks.emplace_back(b);
  reference::q4_k_gemv<Bounded>(View<const Bounded>(blocks.data(), {1, 144}), View<const Bounded>(x.data(), {1}),
                                View<Bounded>(y.data(), {1}));
  EXPECT_EQ(y[0].value, INFINITY);
  EXPECT_FALSE(y[0].may_overflow) << "its class is certain";
}

}  // namespace
}  // namespace assay::numbers::q4_k_golden_test
