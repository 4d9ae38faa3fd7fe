// The 16-bit storage formats: every value round-trips, and a number between two values rounds to the nearest, ties to
// even. Expected values are computed from the formats' definitions.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/bounded.hpp"
#include "core/half.hpp"

namespace assay::numbers::storage_test {
namespace {

/// (-1)^s 2^(e - bias) 1.f, or with e = 0 2^(1 - bias) 0.f (IEEE 754-2019, 3.4); largest e: infinity and NaN.
double value_of(unsigned bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, fraction = static_cast<int>(bits & ((1U << fraction_bits) - 1));
  const int exponent = static_cast<int>(bits >> fraction_bits & ((1U << exponent_bits) - 1));
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

template <class S>
struct Form;
template <>
struct Form<Half> {
  static constexpr int kExponent = 5, kFraction = 10;
  static Half narrow(float x) { return to_half(x); }
};
template <>
struct Form<BFloat16> {
  static constexpr int kExponent = 8, kFraction = 7;
  static BFloat16 narrow(float x) { return to_bfloat16(x); }
};

template <class S>
class Storage : public testing::Test {};
using Formats = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(Storage, Formats);

TYPED_TEST(Storage, EveryValueIsWidenedExactlyAndComesBack) {
  using F = Form<TypeParam>;
  for (unsigned bits = 0; bits <= 0xffff; ++bits) {
    const TypeParam stored{static_cast<std::uint16_t>(bits)};
    const float wide = widen(stored);
    const double want = value_of(bits, F::kExponent, F::kFraction);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_TRUE(std::isnan(widen(F::narrow(wide)))) << bits;
      const bool quiet = (bits >> (F::kFraction - 1) & 1U) != 0;
      ASSERT_TRUE(!quiet || F::narrow(wide).bits == bits) << bits << ": a quiet NaN keeps its payload";
      continue;
    }
    ASSERT_EQ(wide, want) << bits;
    ASSERT_EQ(std::signbit(wide), bits >> 15 != 0) << bits;
    ASSERT_EQ(F::narrow(wide).bits, bits);
  }
}

TYPED_TEST(Storage, BetweenTwoValuesTheNearestIsTakenAndTiesGoToEven) {
  using F = Form<TypeParam>;
  const unsigned infinity = ((1U << F::kExponent) - 1) << F::kFraction;
  for (unsigned sign : {0U, 0x8000U})
    for (unsigned low = 0; low < infinity; ++low) {
      const unsigned high = low + 1;
      const double a = value_of(low, F::kExponent, F::kFraction);
      // The successor of the largest number if there were no infinity.
      const double b = high == infinity ? 2 * a - value_of(low - 1, F::kExponent, F::kFraction)
                                        : value_of(high, F::kExponent, F::kFraction);
      const double middle = a + (b - a) / 2;
      const auto tie = static_cast<float>(middle);
      if (tie != middle) continue;  // below the smallest float, in bfloat16's subnormals
      const float s = sign ? -1.0F : 1.0F;
      ASSERT_EQ(F::narrow(s * tie).bits, sign | (low % 2 == 0 ? low : high)) << low;
      ASSERT_EQ(F::narrow(s * std::nextafter(tie, 0.0F)).bits, sign | low) << low;
      ASSERT_EQ(F::narrow(s * std::nextafter(tie, INFINITY)).bits, sign | high) << low;
    }
  EXPECT_EQ(F::narrow(std::numeric_limits<float>::max()).bits, infinity);
  EXPECT_EQ(F::narrow(-INFINITY).bits, infinity | 0x8000U);
}

TEST(StoredBounds, NanKeepsItsUpperPayload) {
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x7fc00000U)).bits, 0x7fc0);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x7fa00001U)).bits, 0x7fe0);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0xff800001U)).bits, 0xffc0);
}

TEST(StoredBounds, CostHalfAUnitInTheLastPlaceAndNoMore) {
  const struct {
    DType dtype;
    double unit, smallest, largest;
  } formats[] = {{DType::f16, 0x1p-11, 0x1p-14, 65504}, {DType::bf16, 0x1p-8, 0x1p-126, 0x1.fep127}};
  for (const auto& f : formats) {
    // Halfway between 1 and the next number, and just as much below the smallest normal number.
    const double middle = 1 + f.unit, error = stored(f.dtype, Bounded(middle, 0, 0, false)).error;
    EXPECT_GE(error, f.unit);
    EXPECT_LE(error, f.unit * (1 + 4 * f.unit));
    EXPECT_EQ(stored(f.dtype, Bounded(f.smallest / 2 + f.unit * f.smallest, 0, 0, false)).error, f.unit * f.smallest);
    const Bounded inherited = stored(f.dtype, Bounded(1, 0.25, 0.125, false));
    EXPECT_GE(inherited.error, 0.25 + f.unit);
    EXPECT_LE(inherited.statistical, 0.125 + 2 * f.unit);
    EXPECT_FALSE(stored(f.dtype, Bounded(f.largest, 0, 0, false)).may_overflow);
    EXPECT_TRUE(stored(f.dtype, Bounded(f.largest, f.largest * f.unit, 0, false)).may_overflow);
    EXPECT_EQ(stored(f.dtype, Bounded(-2 * f.largest, 0, 0, false)).value, -INFINITY);
  }
  EXPECT_EQ(stored(DType::f32, Bounded(1, 0.25, 0.125, false)).error, 0.25);
}

TEST(StoredBounds, OfWhatIsHeldExactlyOneNumberIsTheNearest) {
  EXPECT_EQ(stored(DType::f16, Bounded(1.5, 0, 0, false)).error, 0);
  EXPECT_EQ(stored(DType::f16, Bounded(1 + 0x1p-12, 0, 0, false)).error, 0x1p-12);
  EXPECT_EQ(stored(DType::bf16, Bounded(-1 - 0x1.8p-7, 0, 0, false)).error, 0x1p-8);
  // The side of the midpoint is unknown.
  EXPECT_GE(stored(DType::f16, Bounded(1 + 0x1p-12, 0x1p-24, 0x1p-24, false)).error, 0x1p-11);
}

/// Flushes of float32 leave numbers alone that are subnormal in f16 only.
TEST(StoredBounds, WhatIsFlushedIsDeclared) {
  const auto error = [](DType dtype, double value) { return stored(dtype, Bounded(value, 0, 0, false)).error; };
  {
    const ArithmeticScope keeping({});
    EXPECT_EQ(error(DType::f16, 0x1p-15), 0);
    EXPECT_EQ(error(DType::bf16, 0x1p-127), 0);
  }
  {
    const ArithmeticScope flushing({.flushes_subnormals = true});
    EXPECT_EQ(error(DType::f16, 0x1p-15), 0);
    EXPECT_LE(error(DType::f16, 0x1.00002p-15), 0x1p-25);
    EXPECT_GE(error(DType::bf16, 0x1p-127), 0x1p-127);
  }
  const ArithmeticScope flushing({.flushes_subnormals = true, .flushes_stored = true});
  EXPECT_GE(error(DType::f16, 0x1p-15), 0x1p-15);
  EXPECT_GE(error(DType::bf16, 0x1p-127), 0x1p-127);
}

/// 1.9 has the same unit in the last place as 1: half a unit is not twice as large there.
TEST(StoredBounds, AUnitIsTheBinades) {
  for (const double value : {1.0, 1.5, 1.9}) {
    EXPECT_LE(stored(DType::f16, Bounded(value, 1e-6, 1e-6, false)).error, 1e-6 + 0x1p-11 * (1 + 0x1p-20)) << value;
    EXPECT_LE(stored(DType::bf16, Bounded(-value, 1e-6, 1e-6, false)).error, 1e-6 + 0x1p-8 * (1 + 0x1p-20)) << value;
  }
  EXPECT_GE(stored(DType::f16, Bounded(1.9999999, 1e-6, 1e-6, false)).error, 1e-6 + 0x1p-10);  // may be 2 or more
}

}  // namespace
}  // namespace assay::numbers::storage_test
