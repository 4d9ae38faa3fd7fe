// Q4_K super-blocks worked out by hand from the format's definition (ggml, block_q4_K and get_scale_min_k4), and the two
// descriptions of it in this repository, that of the references and core/q4_k.hpp, beside each other.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "contract/certificates/q4_k_quantize.hpp"
#include "core/q4_k.hpp"
#include "reference/q4_k_dequantize.hpp"
#include "reference/q4_k_gemv.hpp"
#include "reference/q4_k_quantize.hpp"

namespace assay::numbers {
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

// The three formulas that the bound of a product holds for are the same number. One that is not adds its distance to the bound, which is
// some 2^10 times a bound of 400 terms; roundings of the right ones add as many again for each of their few operations.
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

/// Sub-block 0: -63, -62, .., -32, and 0 .. 30 in the next: dmin = 1, m = 63 and 0; reach 31 and 30, d the smallest half of
/// which 945 reach 31: 31 / 945 = 0.0328042.. lies between 1074 and 1075 times 2^-15, so 1075 * 2^-15 (0x2833).
/// 15 d = 0.49209.., and 63 of it reach 31 (31.0017); 61 reach 30 (30.0175), 60 do not (29.525).
TEST(GoldenQ4K, BlockByHand) {
  Values x(64), bytes(144);
  for (int i = 0; i < 32; ++i) x[static_cast<std::size_t>(i)] = i - 63, x[static_cast<std::size_t>(32 + i)] = std::min(i, 30);
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

/// Quotients are only near: every half and every code is still the one that comparing finds.
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
    const float step = widen(Half{static_cast<std::uint16_t>(1 + random() % 0x7bff)}) * static_cast<float>(1 + random() % 63);
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

/// A code one off is a whole step off: the certificate sees it, wherever it stands.
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

/// Undefined blocks are those whose values no half reaches: below by 63 dmin, 945 d above it.
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
  // The minimum, rounded up by a 63rd part of itself at most, is added to what d has to reach.
  EXPECT_FALSE(may_be_undefined(-4e6F, kHigh - 4e6F * (1 + 1.1F / 63)));
  EXPECT_TRUE(may_be_undefined(-4e6F, kHigh - 4e6F * (1 + 0.5F / 63)));
  EXPECT_TRUE(may_be_undefined(NAN, 0));
}

/// The largest half is a scale; what needs more has none, and all of its super-block is undefined.
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

}  // namespace
}  // namespace assay::numbers
