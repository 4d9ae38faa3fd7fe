// Certificates hold for correct products and fail for wrong ones.
#include "contract/certificates.hpp"

#include <cblas.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/arithmetic.hpp"
#include "core/half.hpp"
#include "evaluation.hpp"
#include "vectors.hpp"

namespace assay::numbers::certificates_test {
namespace {

using contract::Certified;
using contract::freivalds;
using contract::freivalds_exact;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

/// C = A · B in float, in any layout that callers pass.
struct Product {
  Index m, k, n;
  Vector a, b, c;

  Product(Index m_, Index k_, Index n_, Distribution d, Random& random)
      : m(m_), k(k_), n(n_), a(make_vector(d, true, m * k, random)), b(make_vector(d, false, k * n, random)) {
    multiply(fused);
  }
  void multiply(Dot dot) {
    c.assign(static_cast<std::size_t>(m * n), 0);
    Vector column(static_cast<std::size_t>(k));
    for (Index j = 0; j < n; ++j) {
      for (Index p = 0; p < k; ++p) column[static_cast<std::size_t>(p)] = b[static_cast<std::size_t>(p * n + j)];
      for (Index i = 0; i < m; ++i) c[static_cast<std::size_t>(i * n + j)] = dot(a.data() + i * k, column.data(), k);
    }
  }
  float& at(Index i, Index j) { return c[static_cast<std::size_t>(i * n + j)]; }
  View<const float> view(const Vector& v, Index rows, Index columns) const { return {v.data(), {rows, columns}}; }
  Certified certified() const { return freivalds(view(a, m, k), view(b, k, n), view(c, m, n)); }
};

Vector transposed(const Vector& v, Index rows, Index columns) {
  Vector t(v.size());
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      t[static_cast<std::size_t>(j * rows + i)] = v[static_cast<std::size_t>(i * columns + j)];
  return t;
}

TEST(Freivalds, HoldsForCorrectProducts) {
  Random random(8);
  for (Distribution d : kDistributions)
    for (auto [m, k, n] :
         {std::tuple<Index, Index, Index>{1, 1, 1}, {3, 5, 2}, {17, 33, 100}, {64, 1, 9}, {5, 300, 1}, {70, 64, 65}})
      for (const Evaluation& e : kEvaluations) {
        Product p(m, k, n, d, random);
        p.multiply(e.dot);
        const Certified result = p.certified();
        EXPECT_TRUE(result.holds) << e.name << ", " << name(d) << ": " << result.values;
      }
}

TEST(Freivalds, HoldsForReducedArithmeticThatIsDeclared) {
  Random random(9);
  for (const Reduced& reduced : kReduced) {
    const ArithmeticScope scope(reduced.arithmetic);
    for (Distribution d : kDistributions) {
      Product p(9, 40, 12, d, random);
      p.multiply(reduced.dot);
      const Certified result = p.certified();
      EXPECT_TRUE(result.holds) << reduced.name << ", " << name(d) << ": " << result.values;
    }
  }
}

TEST(Freivalds, ReadsEveryLayout) {
  Random random(10);
  for (Index m : {1, 13, 40}) {
    const Product p(m, 27, 35, Distribution::gaussian, random);
    const Vector at = transposed(p.a, p.m, p.k), bt = transposed(p.b, p.k, p.n);
    const View<const float> a = p.view(p.a, p.m, p.k), b = p.view(p.b, p.k, p.n), c = p.view(p.c, p.m, p.n);
    const View<const float> a_by_columns = p.view(at, p.k, p.m).transposed(),
                            b_by_columns = p.view(bt, p.n, p.k).transposed();
    EXPECT_TRUE(freivalds(a_by_columns, b, c).holds);
    EXPECT_TRUE(freivalds(a, b_by_columns, c).holds);
    EXPECT_TRUE(freivalds_exact(View<const float>(nullptr, {0, 2}), b, View<const float>(nullptr, {0, 35})).holds);
    Vector spread(static_cast<std::size_t>(p.k * p.n * 2));
    for (std::size_t i = 0; i < p.b.size(); ++i) spread[2 * i] = p.b[i];
    EXPECT_TRUE(freivalds(a, View<const float>(spread.data(), {p.k, p.n}, {2 * p.n, 2}), c).holds);
    Vector wrong = p.c;
    wrong.back() += 1;
    for (const View<const float>& left : {a, a_by_columns})
      for (const View<const float>& right : {b, b_by_columns})
        EXPECT_FALSE(freivalds(left, right, p.view(wrong, p.m, p.n)).holds);
  }
}

/// A matrix rounded to S, with its values as floats.
template <class S>
struct Stored {
  Index rows, columns;
  std::vector<S> values;

  Stored(const Vector& v, Index r, Index c) : rows(r), columns(c) {
    for (const float x : v) {
      if constexpr (std::is_same_v<S, Half>) values.push_back(to_half(x));
      else values.push_back(to_bfloat16(x));
    }
  }
  Vector floats() const {
    Vector v;
    for (const S x : values) v.push_back(widen(x));
    return v;
  }
  StorageView view() {
    constexpr DType kDType = std::is_same_v<S, Half> ? DType::f16 : DType::bf16;
    return {kDType, values.data(), {rows, columns}, {columns, 1}};
  }
};

/// Results rounded once hold; in a product of one column, one unit more in the last place does not.
template <class S>
void expect_one_rounding(Distribution d, Index k, Index n, Random& random) {
  constexpr Index kRows = 40;
  Product p(kRows, k, n, d, random);
  Stored<S> a(p.a, kRows, k), b(p.b, k, n);
  p.a = a.floats(), p.b = b.floats();
  p.multiply(fused);
  Stored<S> c(p.c, kRows, n);
  const Certified result = freivalds(a.view(), b.view(), c.view());
  EXPECT_TRUE(result.holds) << name(d) << ": " << result.values;
  if (n > 1) return;
  int tried = 0;
  for (Index i = 0; i < kRows; ++i) {
    S& at = c.values[static_cast<std::size_t>(i)];
    const float exact = p.at(i, 0), rounded = widen(at);
    // Away from the exact result; far from sums that cancel, whose float32 bound is not below a unit.
    if (std::fabs(exact) < 0.25F || !std::isfinite(rounded)) continue;
    const S before = at;
    if ((exact > 0) == (rounded >= exact)) ++at.bits;
    else --at.bits;
    EXPECT_FALSE(freivalds(a.view(), b.view(), c.view()).holds) << name(d) << ", row " << i;
    at = before;
    ++tried;
  }
  EXPECT_GT(tried, 10);
}

TEST(Freivalds, HoldsForResultsRoundedOnceTo16Bits) {
  Random random(12);
  for (const Distribution d : kDistributions)
    for (const auto& [k, n] : {std::pair<Index, Index>{7, 3}, {64, 50}, {300, 17}}) {
      expect_one_rounding<Half>(d, k, n, random);
      expect_one_rounding<BFloat16>(d, k, n, random);
    }
}

TEST(Freivalds, SeesASecondRoundingTo16Bits) {
  Random random(13);
  expect_one_rounding<Half>(Distribution::gaussian, 8, 1, random);
  expect_one_rounding<BFloat16>(Distribution::gaussian, 8, 1, random);
}

/// 65520 and more are infinite in f16, and nothing below is.
TEST(Freivalds, OverflowOf16Bits) {
  Stored<Half> a({256, 256}, 2, 1), b({255.875F}, 1, 1), c({65504, INFINITY}, 2, 1);
  EXPECT_FALSE(freivalds(a.view(), b.view(), c.view()).holds) << "256 * 255.875 = 65504 is finite";
  Stored<Half> larger({256}, 1, 1), all({INFINITY, INFINITY}, 2, 1);
  EXPECT_TRUE(freivalds(a.view(), larger.view(), all.view()).holds) << "65536 is infinite";
  // Terms beyond the range whose sum is within: an element of its own decides, not what the row might hold.
  Stored<Half> left({300, 300}, 1, 2), right({300, 300, -300, 300}, 2, 2);
  const auto holds = [&](float first, float second) {
    Stored<Half> result({first, second}, 1, 2);
    return freivalds(left.view(), right.view(), result.view()).holds;
  };
  EXPECT_TRUE(holds(0, INFINITY));
  EXPECT_FALSE(holds(INFINITY, INFINITY));
  EXPECT_FALSE(holds(0, -INFINITY));
  EXPECT_FALSE(holds(NAN, INFINITY));
}

TEST(Freivalds, EmptySumsMustBeZero) {
  Vector c(6, 0.0f);
  const View<const float> a(nullptr, {2, 0}), b(nullptr, {0, 3});
  EXPECT_TRUE(freivalds(a, b, {c.data(), {2, 3}}).holds);
  c[4] = 1e-30f;
  EXPECT_FALSE(freivalds(a, b, {c.data(), {2, 3}}).holds);
}

TEST(Freivalds, SeesFaults) {
  Random random(11);
  const Product correct(48, 64, 80, Distribution::gaussian, random);
  struct Fault {
    std::string_view what;
    void (*plant)(Product&);
  };
  const Fault faults[] = {
      {"one element", [](Product& p) { p.at(17, 3) += 0.5f; }},
      {"an element left at its poison", [](Product& p) { p.at(47, 79) = 1e20f; }},
      {"two rows exchanged", [](Product& p) { std::swap_ranges(&p.at(3, 0), &p.at(3, 0) + 80, &p.at(9, 0)); }},
      {"the last k dropped",
       [](Product& p) {
         p.k = 63;
         p.a.clear();
       }},
      {"a NaN that nothing explains", [](Product& p) { p.at(0, 0) = kNaN; }},
      {"an infinity that nothing explains", [](Product& p) { p.at(5, 5) = kInf; }},
      {"doubled",
       [](Product& p) {
         for (float& x : p.c) x *= 2;
       }},
  };
  for (const Fault& fault : faults) {
    Product p = correct;
    fault.plant(p);
    if (p.a.empty()) {  // dropped k: multiply the shorter factors, certify the full ones
      for (Index i = 0; i < p.m; ++i)
        for (Index j = 0; j < p.n; ++j)
          p.at(i, j) -=
              correct.a[static_cast<std::size_t>(i * 64 + 63)] * correct.b[static_cast<std::size_t>(63 * 80 + j)];
      p.a = correct.a, p.k = 64;
    }
    const Certified result = p.certified();
    EXPECT_FALSE(result.holds) << fault.what;
    EXPECT_NE(result.values, "") << fault.what;
  }
}

TEST(Freivalds, ClassesOfNonfiniteElements) {
  Random random(12);
  for (int trial = 0; trial < 200; ++trial) {
    Product p(6, 9, 7, Distribution::gaussian, random);
    const float planted[] = {kNaN, kInf, -kInf, 0.0f};
    for (int count = 0; count < 3; ++count) {
      Vector& target = random.chance(0.5) ? p.a : p.b;
      target[random.below(target.size())] = planted[random.below(4)];
    }
    p.multiply(trial % 2 ? sequential : pairwise);
    EXPECT_TRUE(p.certified().holds) << p.certified().values;
    for (std::size_t i = 0; i < p.c.size(); ++i) {
      Product wrong = p;
      wrong.c[i] = std::isfinite(p.c[i]) ? kNaN : 1.0f;  // an extra NaN, or a swallowed one
      EXPECT_FALSE(wrong.certified().holds) << "element " << i;
      if (!std::isinf(p.c[i])) continue;
      wrong.c[i] = -p.c[i];
      EXPECT_FALSE(wrong.certified().holds) << "element " << i << " with the other sign";
    }
  }
}

/// All sums of this product are infinite: classes are checked as long as that costs at most 64 readings of the
/// operands.
TEST(Freivalds, ClassesAreCheckedWhileThatIsCheap) {
  const Index n = 400;
  const Vector a(static_cast<std::size_t>(n * n), kInf), b(a.size(), 1);
  Vector c = a;
  const auto holds = [&] { return freivalds({a.data(), {n, n}}, {b.data(), {n, n}}, {c.data(), {n, n}}).holds; };
  EXPECT_TRUE(holds());
  c[0] = 1;
  EXPECT_FALSE(holds());
  c[0] = kInf, c.back() = 1;
  EXPECT_TRUE(holds()) << "64 (3 n^2) < n^3";
}

/// An error in a finite element next to non-finite ones is still found.
TEST(Freivalds, FiniteElementsBesideNonfiniteOnes) {
  Random random(13);
  Product p(8, 8, 8, Distribution::gaussian, random);
  p.a[3] = kNaN;
  p.b[5] = kInf;
  p.multiply(sequential);
  ASSERT_TRUE(p.certified().holds);
  p.at(7, 7) += 1;
  EXPECT_FALSE(p.certified().holds);
}

TEST(Freivalds, OverflowIsAcceptedOnlyWhereItIsPossible) {
  const Vector a{kMax, kMax}, small{1.0f, 1.0f};
  const auto check = [](const Vector& x, const Vector& y, float c) {
    return freivalds({x.data(), {1, 2}}, {y.data(), {2, 1}}, {&c, {1, 1}}).holds;
  };
  EXPECT_TRUE(check(a, small, kInf));
  EXPECT_TRUE(check(a, {1.0f, -1.0f}, 0.0f));
  EXPECT_TRUE(check({kMax, kMax}, {2.0f, -2.0f}, kNaN)) << "inf - inf";
  EXPECT_FALSE(check(small, small, kInf));
  EXPECT_FALSE(check({kInf, 1.0f}, small, -kInf));
  EXPECT_TRUE(check({kInf, -kMax}, {1.0f, 2.0f}, kNaN)) << "inf + (-max * 2) may be inf - inf";
  EXPECT_FALSE(check({kInf, -kMax}, {1.0f, 2.0f}, 5.0f));
}

/// The largest input alone causes no overflow: its product with a half must not be infinite.
TEST(Freivalds, TheLargestInputIsNoOverflow) {
  const float half[] = {0.5F}, largest[] = {kMax};
  for (const bool left : {false, true}) {
    const View<const float> a(left ? largest : half, {1, 1}), b(left ? half : largest, {1, 1});
    const float right[] = {kMax / 2}, wrong[] = {kInf};
    EXPECT_TRUE(freivalds(a, b, {right, {1, 1}}).holds);
    EXPECT_FALSE(freivalds(a, b, {wrong, {1, 1}}).holds);
  }
}

/// Next to an infinity the largest input leaves the class certain, unless input rounding makes it infinite.
TEST(Freivalds, TheLargestInputLeavesTheClassOfAnInfinityCertain) {
  const float a[] = {kInf, kMax}, b[] = {1, 0x1p-20F};
  const auto holds = [&](float c) { return freivalds({a, {1, 2}}, {b, {2, 1}}, {&c, {1, 1}}).holds; };
  EXPECT_TRUE(holds(kInf));
  EXPECT_FALSE(holds(kNaN));
  EXPECT_FALSE(holds(-kInf));
  const ArithmeticScope rounded({.inputs = Format::bf16});
  EXPECT_TRUE(holds(kNaN)) << "the largest float may be infinite as a bfloat16";
}

TEST(Freivalds, SignsAreOthersInEveryCall) {
  Random random(15);
  Product p(4, 8, 10, Distribution::gaussian, random);
  p.at(3, 4) += 100, p.at(3, 5) -= 100;  // equal signs of the two columns cancel it
  int seen = 0;
  for (int call = 0; call < 60; ++call) seen += !p.certified().holds;
  EXPECT_GT(seen, 0);
  EXPECT_LT(seen, 60);
}

/// Faults in two columns that cancel under equal or opposite signs are found eventually, for any pair of columns.
TEST(Freivalds, NoTwoColumnsShareTheirSigns) {
  const Index n = 131;
  const float one[] = {1};
  const Vector b(static_cast<std::size_t>(n), 1);
  for (std::size_t j = 1; j < b.size(); ++j)
    for (const float second : {1.0F, -1.0F}) {
      Vector c = b;
      c[0] += 1, c[j] += second;
      int calls = 0;
      while (calls < 60 && freivalds({one, {1, 1}}, {b.data(), {1, n}}, {c.data(), {1, n}}).holds) ++calls;
      EXPECT_LT(calls, 60) << "columns 0 and " << j;
    }
}

/// Infinity times a subnormal number is NaN on a machine that flushes the number, and infinite on every other.
TEST(Freivalds, FlushedFactorsOfInfinityMayGiveNaN) {
  const float a[] = {kInf, 1, 1, 1}, b[] = {1, 0x1p-130F, 1, 1}, c[] = {kInf, kNaN, 2, 1};
  const auto holds = [&] { return freivalds({a, {2, 2}}, {b, {2, 2}}, {c, {2, 2}}).holds; };
  EXPECT_FALSE(holds());
  const ArithmeticScope flushing({.flushes_subnormals = true});
  EXPECT_TRUE(holds());
}

/// An empty sum is 0 without rounding: the certificate names the wrong row.
TEST(Freivalds, ARowOfNoTermsIsZeroBesideOneThatIsNot) {
  const float c[] = {0, kNaN};
  const Certified result = freivalds({nullptr, {2, 0}}, {nullptr, {0, 1}}, {c, {2, 1}});
  EXPECT_FALSE(result.holds);
  EXPECT_EQ(result.values.find("row 1: "), 0U) << result.values;
}

TEST(FreivaldsExact, SeesAnySingleUnit) {
  Random random(14);
  Product p(40, 50, 60, Distribution::gaussian, random);
  for (float& x : p.a) x = static_cast<float>(random.between(-4095, 4095));
  for (float& x : p.b) x = static_cast<float>(random.between(-1, 1));
  p.multiply(pairwise);
  const auto exact = [&] {
    return freivalds_exact(p.view(p.a, p.m, p.k), p.view(p.b, p.k, p.n), p.view(p.c, p.m, p.n));
  };
  EXPECT_TRUE(exact().holds) << exact().values;
  for (std::size_t i = 0; i < p.c.size(); i += 7) {
    p.c[i] += 1;
    EXPECT_FALSE(exact().holds);
    p.c[i] -= 1;
  }
  // Faults that random signs cancel half of the time.
  p.at(3, 4) += 1, p.at(3, 5) -= 1;
  EXPECT_FALSE(exact().holds);
  p.at(3, 4) -= 1, p.at(3, 5) += 1;
  for (float bad : {0.5f, kNaN, kInf}) {
    const float good = p.at(1, 1);
    p.at(1, 1) = bad;
    EXPECT_FALSE(exact().holds);
    p.at(1, 1) = good;
  }
  Product zeros(3, 4, 5, Distribution::gaussian, random);
  for (Vector* v : {&zeros.a, &zeros.b, &zeros.c}) v->assign(v->size(), 0.0f);
  zeros.at(1, 1) = 0.5f;  // the sum has no missing term
  EXPECT_FALSE(freivalds_exact(zeros.view(zeros.a, 3, 4), zeros.view(zeros.b, 4, 5), zeros.view(zeros.c, 3, 5)).holds);
  const Vector bt = transposed(p.b, p.k, p.n);
  EXPECT_TRUE(freivalds_exact(p.view(p.a, p.m, p.k), p.view(bt, p.n, p.k).transposed(), p.view(p.c, p.m, p.n)).holds);
  p.a[0] = 0.5f;
  EXPECT_THROW(exact(), std::logic_error);
}

}  // namespace
}  // namespace assay::numbers::certificates_test
