// Single operations of Bounded, Dual and std::complex, and NaN, infinities and overflow in Bounded.
#include <gtest/gtest.h>

#include <cfloat>
#include <functional>
#include <limits>
#include <thread>
#include <tuple>
#include <utility>

#include "core/bounded.hpp"
#include "core/dual.hpp"
#include "core/forms.hpp"
#include "core/rounded.hpp"
#include "falsify/engine/random.hpp"

namespace assay::numbers::number_types_test {
namespace {

using falsify::Random;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Bounded product_sum(std::initializer_list<std::pair<float, float>> terms) {
  Sum<Bounded> sum;
  for (const auto& [x, y] : terms) sum += Bounded::input(x) * Bounded::input(y);
  return sum.value();
}

/// Checks that f in float stays within the bound of the same formula in Bounded, and that some result approaches the
/// bound.
template <class Formula>
void elementwise_is_sound(Formula formula, double low, double high) {
  Random random(7);
  double worst = 0;
  for (int trial = 0; trial < 200'000; ++trial) {
    const auto draw = [&] { return static_cast<float>(low + (high - low) * random.uniform()); };
    const float x = draw(), y = draw();
    const Bounded want = formula(Bounded::input(x), Bounded::input(y));
    const double exact = formula(static_cast<double>(x), static_cast<double>(y));
    const double got = formula(x, y);
    ASSERT_EQ(want.value, exact);
    ASSERT_LE(want.statistical, want.error);
    ASSERT_LE(std::fabs(got - exact), want.error) << x << " " << y;
    if (want.error > 0 && std::isfinite(want.error)) worst = std::max(worst, std::fabs(got - exact) / want.error);
  }
  EXPECT_GT(worst, 0.2) << "a bound that nothing comes near is no bound of this formula";
}

TEST(BoundedType, SingleOperationsAreSound) {
  using std::exp, std::log, std::sqrt;
  elementwise_is_sound([](auto x, auto y) { return decltype(x)(x * y) * x + y; }, -4, 4);
  elementwise_is_sound([](auto x, auto y) { return (x - y) / (x * x + y); }, 1, 4);
  elementwise_is_sound([](auto x, auto y) { return sqrt(x + y) / y; }, 0.1, 4);
  elementwise_is_sound([](auto x, auto y) { return x / (decltype(x)(1) + exp(-x)) + y; }, -20, 20);
  elementwise_is_sound([](auto x, auto y) { return log(x) - y; }, 0.01, 10);
  elementwise_is_sound([](auto x, auto y) { return -x / y; }, 0.5, 2);
}

/// A rounding errs by half a unit in the last place, which is the same for a whole binade.
TEST(BoundedType, ARoundingCostsHalfAUnitOfTheBinade) {
  const float third = 1.0F / 3;
  for (const double factor : {3.5, 4.5, 5.9}) {  // products between 1 and 2
    const Bounded x = Bounded::input(third) * Bounded::input(static_cast<float>(factor));
    EXPECT_GE(x.error, 0x1p-24) << factor;
    EXPECT_LE(x.error, 0x1p-24 * (1 + 0x1p-20)) << factor;
  }
  const Bounded root = sqrt(Bounded::input(3.7F));
  EXPECT_LE(root.error, 0x1p-24 * (1 + 0x1p-20));
  const Accuracy& promised = accuracy(FunctionLibrary::cuda, Function::exp);
  EXPECT_EQ(promised.within(0, 1.9), promised.ulp * 0x1p-23);
  EXPECT_EQ(promised.within(0, 1.99999999), promised.ulp * 0x1p-22) << "a result may lie in the next binade";
  const Accuracy& of_value = accuracy(FunctionLibrary::octant, Function::sin);
  EXPECT_EQ(of_value.within(0, 0.9), of_value.ulp * 0x1p-23 * 0.9);
}

TEST(BoundedType, SumsAndProductsThatAreFloatsAreExact) {
  const auto x = [](float value) { return Bounded::input(value); };
  EXPECT_EQ((x(3) - x(5)).error, 0);
  EXPECT_EQ((x(1) + x(0x1p-20F)).error, 0);
  EXPECT_EQ(Bounded(x(3) * x(0.125F)).error, 0);
  EXPECT_GT((x(1) + x(0x1p-24F)).error, 0) << "no float";
  EXPECT_GT((x(0x1p60F) + x(1)).error, 0) << "a double that is no sum";
  EXPECT_GT(Bounded(x(1 + 0x1p-23F) * x(1 + 0x1p-23F)).error, 0);
  EXPECT_GT((Bounded(0.1) + x(0.25F)).error, 0) << "a constant that was rounded";
  EXPECT_GT((x(0x1p127F) + x(0x1p127F)).error, 0) << "beyond the largest";
  {
    const ArithmeticScope narrow({.accumulator = Format::f16});
    EXPECT_GT((x(1) + x(0x1p-11F)).error, 0);
    EXPECT_EQ((x(1) + x(0x1p-10F)).error, 0);
  }
  const ArithmeticScope flushing({.flushes_subnormals = true});
  EXPECT_GT((x(0x1.8p-126F) - x(0x1p-126F)).error, 0) << "flushed";
  EXPECT_GT(Bounded(x(0x1p-100F) * x(0x1p-30F)).error, 0);
}

TEST(BoundedType, MaximumKeepsTheLargerError) {
  const Bounded small{1, 0.5, 0.5, false}, large{2, 0.1, 0.1, false};
  EXPECT_EQ(maximum(small, large).value, 2);
  EXPECT_EQ(maximum(small, large).error, 0.5);
  EXPECT_TRUE(large > small);
}

TEST(BoundedType, ConstantsAreExactOrRoundedOnce) {
  EXPECT_EQ(Bounded(0.5).error, 0);
  EXPECT_GE(Bounded(0.1).error, std::fabs(static_cast<double>(0.1f) - 0.1));
}

TEST(BoundedType, InputsCarryTheRoundingThatTheKernelDeclares) {
  EXPECT_EQ(Bounded::input(3.5f).error, 0);
  {
    const Arithmetic tf32{.inputs = Format::tf32, .input_rounding = Rounding::toward_zero};
    const ArithmeticScope scope(tf32);
    EXPECT_EQ(Bounded::input(3.5f).error, 0) << "TF32 holds it";
    const float between = 3.5f + 0x1p-21f;
    EXPECT_EQ(Bounded::input(between).error, static_cast<double>(between) * 0x1p-10);
    EXPECT_TRUE(Bounded::input(std::numeric_limits<float>::max()).may_overflow);
  }
  {
    const Arithmetic flushing{.flushes_subnormals = true};
    const ArithmeticScope scope(flushing);
    EXPECT_EQ(Bounded::input(0x1p-130f).error, 0x1p-130);
    EXPECT_EQ(Bounded::input(1.0f).error, 0);
  }
  EXPECT_EQ(Bounded::input(3.5f).error, 0) << "the arithmetic before comes back";
}

TEST(BoundedType, TheSumOfNoTermsIsEmptyUntilSomethingIsDoneWithIt) {
  const Sum<Bounded> none;
  Sum<Bounded> zero, product;
  zero += Bounded(0);
  product += Bounded(0) * Bounded(-1);
  EXPECT_TRUE(none.value().empty);
  EXPECT_FALSE(zero.value().empty);
  EXPECT_FALSE(product.value().empty);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) EXPECT_TRUE(stored(dtype, none.value()).empty);
  EXPECT_FALSE(Bounded(none.value() * Bounded(-1)).empty);  // -0 for a negative scale
  EXPECT_FALSE((none.value() + Bounded(0)).empty);
  EXPECT_FALSE((-none.value()).empty);
}

TEST(BoundedType, ClassesFollowIeee) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(product_sum({{nan, 1}, {1, 1}}).value));
  EXPECT_TRUE(std::isnan(product_sum({{inf, 0}}).value));
  EXPECT_TRUE(std::isnan(product_sum({{inf, 1}, {-inf, 1}}).value));
  EXPECT_EQ(product_sum({{inf, -2}, {1, 1}}).value, -kInf);
  for (const Bounded& b :
       {product_sum({{nan, 1}}), product_sum({{inf, 2}, {3, 4}}), product_sum({{inf, 0}, {3e38f, 3e38f}})})
    EXPECT_FALSE(b.may_overflow) << "the class is certain";
}

TEST(BoundedType, OverflowIsPossibleWhereMagnitudesSayso) {
  const float big = std::numeric_limits<float>::max();
  EXPECT_FALSE(product_sum({{big, 0.5f}}).may_overflow);
  EXPECT_TRUE(product_sum({{big, 0.5f}, {big, -0.6f}}).may_overflow) << "finite, yet some order may pass the largest";
  EXPECT_TRUE(product_sum({{big, 0.5f}, {big, 0.6f}}).may_overflow);
  EXPECT_TRUE(product_sum({{big, 2.0f}, {big, -2.0f}}).may_overflow);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(product_sum({{inf, 1}, {-big, 2}}).may_overflow) << "inf - inf is NaN";
  const Arithmetic toward_zero{.accumulation = Rounding::toward_zero};
  const ArithmeticScope scope(toward_zero);
  EXPECT_EQ(product_sum({{big, 2.0f}}).error, kInf) << "toward zero, an overflow stops at the largest float";
}

TEST(BoundedType, BeyondDoubleErrorsDecide) {
  const auto any_number = [](const Bounded& x) { return std::isfinite(x.value) && x.error == kInf && x.may_overflow; };
  const auto infinite = [](const Bounded& x) { return x.value == kInf; };
  const Bounded vast{1e305, 0, 0, true}, vague{1e305, kInf, kInf, true}, tiny{1e-30, 0, 0, false};
  const auto sum_of = [](const auto& term) {
    Sum<Bounded> sum;
    for (int i = 0; i < 3000; ++i) sum += term;
    return sum.value();
  };
  EXPECT_TRUE(infinite(Bounded(vast * vast)));
  EXPECT_TRUE(infinite(vast / tiny));
  EXPECT_EQ((-vast / tiny).value, -kInf);
  EXPECT_TRUE(infinite(sum_of(vast)));
  EXPECT_TRUE(infinite(sum_of(vast * Bounded(4000.0))));
  EXPECT_TRUE(infinite(Bounded(1e308, 0, 0, true) + Bounded(1e308, 0, 0, true)));
  EXPECT_TRUE(any_number(Bounded(vague * vast)));
  EXPECT_TRUE(any_number(vague / tiny));
  EXPECT_TRUE(any_number(sum_of(vague)));
  EXPECT_TRUE(any_number(sum_of(vague * Bounded(4000.0))));
  EXPECT_TRUE(any_number(Bounded(1.5e308, kInf, kInf, true) + Bounded(1e308, 0, 0, true)));
  // An overflowed argument may be -inf.
  EXPECT_TRUE(any_number(exp(Bounded(3e38, 1, 1, true)))) << "exp(-inf) is 0";
  EXPECT_TRUE(any_number(expm1(Bounded(3e38, 1, 1, true)))) << "expm1(-inf) is -1";
  EXPECT_TRUE(infinite(exp(Bounded(3e38, 1, 1, false))));
  EXPECT_GE(sigmoid(Bounded(3e38, 1, 1, true)).error, 1) << "sigmoid(-inf) is 0";
  EXPECT_GE(sigmoid(Bounded(kInf, 0, 0, true)).error, 1);
}

/// A zero with an error may be negative, where the root does not exist.
TEST(BoundedType, TheReciprocalRootOfAZeroThatIsOffIsAnything) {
  for (const double zero : {0.0, -0.0}) {
    const Bounded off = reciprocal_sqrt(Bounded(zero, 0x1p-30, 0x1p-30, false));
    EXPECT_TRUE(off.may_overflow && off.error == kInf) << zero << ": " << off.value << " +- " << off.error;
  }
}

/// A thread's initial state equals its state after leaving another arithmetic: bounds do not depend on history.
TEST(BoundedType, BoundsAreThoseOfTheirArithmeticInANewThreadToo) {
  const auto all = [](const Roundings& r) {
    return std::tuple(r.unit, r.division, r.input_unit, r.input_floor, r.input_largest, r.underflow, r.flush, r.largest,
                      r.saturates, r.nearest);
  };
  decltype(all(Roundings::current())) first, later;
  std::thread([&] {
    first = all(Roundings::current());
    {
      const ArithmeticScope other({.inputs = Format::bf16, .accumulator = Format::bf16, .flushes_subnormals = true});
      EXPECT_NE(all(Roundings::current()), first);
    }
    later = all(Roundings::current());
  }).join();
  EXPECT_EQ(first, later);
  EXPECT_EQ(first, all(Roundings(Arithmetic{})));
}

/// The reciprocal of 2^126 is the smallest normal number, which loses nothing: x / y costs two roundings. The
/// reciprocal of the next number is subnormal, and loses another half unit.
TEST(BoundedType, AQuotientByAReciprocalLosesOnlyWhatIsSubnormal) {
  const auto roundings = [](float y) {
    const Bounded x = quotient(Bounded::input(0x1p20F), Bounded::input(y));
    return x.error / (0x1p-24 * x.value);
  };
  for (const float y : {0x1p125F, 0x1p126F}) {
    EXPECT_GE(roundings(y), 2) << y;
    EXPECT_LE(roundings(y), 2 + 0x1p-24 + 0x1p-20)
        << y << ": their product, and half a subnormal beside a quotient of at least 2^-106";
  }
  EXPECT_GE(roundings(std::nextafter(0x1p126F, INFINITY)), 2.5);
}

TEST(BoundedType, StatisticalIsForRoundingToNearestOnly) {
  const auto of_thousand = [] {
    Sum<Bounded> sum;
    for (int p = 0; p < 1000; ++p) sum += Bounded::input(p % 2 == 0 ? 1.5f : 0.5f) * Bounded::input(1.25f);
    return sum.value();
  };
  EXPECT_LT(of_thousand().statistical, of_thousand().error);
  for (const Arithmetic& a : {Arithmetic{.accumulation = Rounding::toward_zero}, Arithmetic{.block = 4}}) {
    const ArithmeticScope scope(a);
    EXPECT_EQ(of_thousand().statistical, of_thousand().error);
  }
}

/// 2^15 2^-24 + 2^-23 - 2^15 2^-24 on an H100, with f16 factors (mma.sync m16n8k16): the products of the subnormal
/// 2^-24 are aligned at 2^15 2^-14, and terms more than 25 bits below are lost; 24 bits are guaranteed.
TEST(BoundedType, BlocksAlignSubnormalFactorsAsTheSmallestNormalNumber) {
  const ArithmeticScope scope(Arithmetic{.inputs = Format::f16, .accumulation = Rounding::toward_zero, .block = 4});
  const auto error_of = [](float large, float factor, float beside) {
    Sum<Bounded> sum;
    sum += Bounded::input(large) * Bounded::input(factor);
    sum += Bounded::input(beside) * Bounded::input(beside);
    sum += Bounded::input(-large) * Bounded::input(factor);
    return sum.value().error;
  };
  for (const float beside : {0x1p-12F, 0x1p-13F}) EXPECT_GE(error_of(0x1p15F, 0x1p-24F, beside), beside * beside);
  EXPECT_GE(error_of(0x1p15F, 0x1p-15F, 0x1p-12F), 0x1p-23 - 0x1p-25) << "every subnormal";
  EXPECT_LE(error_of(0x1p15F, 0x1p-24F, 0x1p-12F), 16 * 0x1p-23) << "four products of 2^1, of 2^-23 each, and no more";
  EXPECT_LE(error_of(0x1p5F, 0x1p-14F, 0x1p-12F), 16 * 0x1p-23 * 0x1p-9)
      << "a normal factor counts with its own exponent";
  EXPECT_LE(error_of(0x1p15F, 0, 0x1p-12F), 0x1p-44) << "zero is no product to align to";
}

/// Derivatives of a formula that uses every operation, by hand: f = sqrt(x) exp(-x) / (x + 2) + log(x) x.
TEST(Derivatives, DualAndComplexStepAgreeWithTheFormula) {
  const auto f = [](auto x) {
    using std::exp, std::log, std::sqrt;
    using T = decltype(x);
    return sqrt(x) * exp(-x) / (x + T(2)) + log(x) * x - T(1);
  };
  for (double x : {0.3, 1.0, 2.5, 7.0}) {
    const double quotient = std::sqrt(x) * std::exp(-x) / (x + 2);
    const double by_hand = quotient * (0.5 / x - 1 - 1 / (x + 2)) + std::log(x) + 1;
    // A few operations, each within a few units of double's rounding of terms no larger than these.
    const double rounding = 32 * 0x1p-53 * (std::fabs(quotient) * (0.5 / x + 2) + std::fabs(std::log(x)) + 1);
    EXPECT_LE(std::fabs(f(Dual<double>(x, 1)).derivative - by_hand), rounding);
    const double step = 0x1p-300;
    EXPECT_LE(std::fabs(f(std::complex<double>(x, step)).imag() / step - by_hand), rounding);
    EXPECT_EQ(f(Dual<double>(x, 1)).value, f(x));
  }
}

/// Derivatives larger than the values that divide them.
TEST(Derivatives, OfLogarithmsAndQuotients) {
  EXPECT_EQ(log(Dual<double>(2, 5)).derivative, 2.5);
  EXPECT_EQ((Dual<double>(6, 7) / Dual<double>(2, 0)).derivative, 3.5);
  EXPECT_EQ(log(Dual<Bounded>(Bounded(2.0), Bounded(5.0))).derivative.value, 2.5);
}

/// Calls `expect` for each function of x with derivative 3 and each operator with 5 of derivative 7, with the value and
/// derivative by hand.
template <class T, class Expect>
void each_function(double x, const Expect& expect) {
  const Dual<T> at(T(x), T(3.0)), other(T(5.0), T(7.0));
  const double root = std::sqrt(x), t = std::tanh(x);
  expect(sqrt(at), root, 3 / (2 * root));
  expect(exp(at), std::exp(x), 3 * std::exp(x));
  expect(expm1(at), std::expm1(x), 3 * std::exp(x));
  expect(log(at), std::log(x), 3 / x);
  expect(log1p(at), std::log1p(x), 3 / (1 + x));
  expect(sin(at), std::sin(x), 3 * std::cos(x));
  expect(cos(at), std::cos(x), -3 * std::sin(x));
  expect(tanh(at), t, 3 * (1 - t * t));
  expect(absolute(-at), x, 3);
  expect(at * other, 5 * x, 3 * 5 + 7 * x);
  expect(at / other, x / 5, (3 - x / 5 * 7) / 5);
  expect(at + other, x + 5, 10);
  expect(at - other, x - 5, -4);
}

constexpr double kRoundings = 8 * 0x1p-53;  // each of these formulas takes at most eight roundings in double

TEST(Derivatives, OfEachFunction) {
  for (const double x : {0.25, 0.7, 1.5, 3.0})
    each_function<double>(x, [](const Dual<double>& found, double value, double derivative) {
      EXPECT_EQ(found.value, value);
      EXPECT_LE(std::fabs(found.derivative - derivative), kRoundings * std::fabs(derivative))
          << found.derivative << " for " << derivative;
    });
}

/// The same for Dual<Bounded>: values and derivatives agree with double, each with a bound.
TEST(Derivatives, OfEachFunctionWithBounds) {
  const auto within = [](const Bounded& x, double want) {
    EXPECT_NEAR(x.value, want, kRoundings * std::fabs(want));
    EXPECT_LE(x.statistical, x.error);
    EXPECT_TRUE(std::isfinite(x.error) && !x.may_overflow);
  };
  for (const double x : {0.25, 0.75, 1.5, 3.0}) {
    each_function<Bounded>(x, [&](const Dual<Bounded>& found, double value, double derivative) {
      within(found.value, value), within(found.derivative, derivative);
    });
    const Dual<Bounded> at(Bounded(x), Bounded(3.0)), other(Bounded(5.0), Bounded(7.0));
    EXPECT_TRUE(at < other && at <= other && other > at && other >= at && at <= at && at >= at);
    EXPECT_FALSE(at < at || at > at || other < at || other <= at || at > other || at >= other);
  }
}

/// The complex step of functions for which std::complex has no operator.
TEST(Derivatives, OfEachFunctionByTheComplexStep) {
  const double step = 0x1p-300;
  for (const double x : {0.25, 0.75, 1.5, 3.0}) {
    const std::complex<double> at(x, 3 * step);
    const auto expect = [&](std::complex<double> found, double value, double derivative) {
      EXPECT_NEAR(found.real(), value, 16 * 0x1p-53 * (1 + std::fabs(value)));
      EXPECT_NEAR(found.imag() / step, derivative, 16 * 0x1p-53 * std::fabs(derivative));
    };
    expect(assay::expm1(at), std::expm1(x), 3 * std::exp(x));
    expect(assay::log1p(at), std::log1p(x), 3 / (1 + x));
    expect(absolute(-at), x, 3);
    expect(sigmoid(at), 1 / (1 + std::exp(-x)), 3 * std::exp(-x) / (1 + std::exp(-x)) / (1 + std::exp(-x)));
  }
}

TEST(BoundedType, BlocksOfTwoTruncateAndThoseOfOneDoNot) {
  const Roundings one(Arithmetic{.block = 1}), two(Arithmetic{.block = 2}), four(Arithmetic{.block = 4});
  EXPECT_TRUE(one.nearest && !one.saturates);
  EXPECT_TRUE(!two.nearest && two.saturates);
  EXPECT_EQ(two.unit, four.unit);
  EXPECT_GT(two.unit, 1.9 * one.unit);
}

TEST(BoundedType, BoundsUpToTheLargestDoubleAreFinite) {
  EXPECT_EQ(detail::finite_or_infinite(DBL_MAX), DBL_MAX);
  EXPECT_EQ(detail::finite_or_infinite(kInf), kInf);
  EXPECT_EQ(detail::finite_or_infinite(kNaN), kInf);
}

/// From IEEE 754: the largest significand times the largest power of two.
TEST(BoundedType, InputsOfEachFormatReachToItsLargestNumber) {
  const std::pair<Format, double> largest[] = {
      {Format::f32, FLT_MAX}, {Format::tf32, 0x1.ffcp127}, {Format::f16, 65504}, {Format::bf16, 0x1.fep127}};
  for (const auto& [format, number] : largest)
    EXPECT_EQ(Roundings(Arithmetic{.inputs = format}).input_largest, number) << name(format);
}

TEST(BoundedType, OrderLooksAtTheValueOnly) {
  const Bounded low(1, 5, 5, true), same(1, 0, 0, false), high(2, 7, 7, false);
  EXPECT_TRUE(low < high && high > low && low <= high && high >= low && low <= same && low >= same);
  EXPECT_FALSE(high < low || low > high || high <= low || low >= high || low < same || low > same);
}

TEST(Derivatives, OrderLooksAtTheValueOnly) {
  const Dual<double> low(1, 100), high(2, -100);
  EXPECT_TRUE(low < high && high > low && low <= high && high >= low && !(high < low));
  EXPECT_EQ(maximum(low, high).derivative, -100);
  EXPECT_EQ(absolute(Dual<double>(-3, 5)).derivative, -5);
  EXPECT_EQ(maximum(Dual<double>(2, 1), Dual<double>(2, 5)).derivative, 1) << "the first where they tie";
  EXPECT_EQ(absolute(Dual<double>(0, 5)).derivative, 5);
  const std::complex<double> z(-3, 5), w(1, 1);
  EXPECT_EQ(absolute(z), -z) << "analytic: no modulus";
  EXPECT_EQ(maximum(z, w), w);
  EXPECT_EQ(maximum(2.0, 3.0), 3.0);
  EXPECT_TRUE(std::isnan(maximum(kNaN, 1.0)));
}

}  // namespace
}  // namespace assay::numbers::number_types_test
