// Bounded is sound: no correct evaluation in any order exceeds its bound, and the search behind this claim detects a
// bound that is too small.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "search.hpp"

namespace assay::numbers::soundness_test {
namespace {

constexpr Index kLengths[] = {1, 2, 3, 5, 16, 64, 256, 1024, 4096};

/// Returns the number of rows per length: each length costs about the same, and short ones, with the tightest bounds,
/// get most.
Index rows_for(Index n) { return n <= 5 ? 80 : n <= 16 ? 64 : n <= 64 ? 40 : n <= 256 ? 24 : n <= 1024 ? 12 : 8; }

TEST(Soundness, NoCorrectResultExceedsItsBound) {
  Tightness total;
  std::map<std::pair<Index, std::string_view>, Tightness> gaussian;
  Random random(1);
  for (int round = 0; round < 4; ++round)
    for (Distribution d : kDistributions)
      for (Index n : kLengths) {
        const Products products(d, rows_for(n), n, random);
        const auto record = [&](std::string_view evaluation, const Tightness& t) {
          total |= t;
          EXPECT_LE(t.worst, 1) << evaluation << ", n = " << n << ", " << name(d);
          EXPECT_EQ(t.wrong_class, 0) << evaluation << ", n = " << n << ", " << name(d);
          if (d == Distribution::gaussian) {
            gaussian[{n, evaluation}] |= t;
            EXPECT_LE(t.statistical, 1) << evaluation << ", n = " << n << ", " << name(d);
          }
        };
        for (const Evaluation& e : kEvaluations) record(e.name, products.compare(e.dot));
        record("OpenBLAS sgemm", products.compare_sgemm());
      }
  EXPECT_GE(total.outputs, 1'000'000);
  fmt::print("{} outputs, {} that overflowed; largest error / bound {:.4f}\n", total.outputs, total.skipped,
             total.worst);
  fmt::print("largest error / bound on N(0, 1): worst case, statistical\n");
  fmt::print("{:>6}", "n");
  for (std::string_view e : {"sequential", "pairwise", "fused", "blocked", "OpenBLAS sdot", "OpenBLAS sgemm"})
    fmt::print("  {:>17}", e);
  for (Index n : {16, 256, 1024, 4096}) {
    fmt::print("\n{:>6}", n);
    for (std::string_view e : {"sequential", "pairwise", "fused", "blocked", "OpenBLAS sdot", "OpenBLAS sgemm"})
      fmt::print("  {:>8.2g} {:>8.2g}", gaussian[{n, e}].worst, gaussian[{n, e}].statistical);
  }
  fmt::print("\n");
}

/// Nearly equal terms are rounded alike: their errors add up.
TEST(Soundness, TermsThatAreNearlyEqualHaveNoStatisticalBoundBelowTheWorst) {
  Random random(3);
  for (const Index n : {100, 1000, 14'000, 60'000})
    for (double spread = 1; spread > 1e-8; spread /= 2) {
      const double mean = std::exp2(random.uniform());
      Sum<Bounded> sum;
      float sequential = 0;
      for (Index i = 0; i < n; ++i) {
        const auto term = static_cast<float>(mean * std::exp(spread * random.gaussian()));
        sum += Bounded(term, 0, 0, false);
        sequential += term;
      }
      const Bounded want = sum.value();
      EXPECT_LE(std::fabs(sequential - want.value), want.statistical) << n << " terms, " << spread;
      if (spread == 1 && n >= 1000) {
        EXPECT_LT(want.statistical, want.error / 2) << n;
      }
    }
}

TEST(Soundness, HoldsForEveryArithmeticAKernelMayDeclare) {
  Random random(2);
  for (const Reduced& reduced : kReduced) {
    const ArithmeticScope scope(reduced.arithmetic);
    Tightness total;
    for (Distribution d : kDistributions)
      for (Index n : kLengths) {
        const Products products(d, std::min<Index>(rows_for(n), 16), n, random);
        const Tightness t = products.compare(reduced.dot);
        EXPECT_LE(t.worst, 1) << reduced.name << ", n = " << n << ", " << name(d);
        EXPECT_TRUE(d != Distribution::gaussian || t.statistical <= 1) << reduced.name << ", n = " << n;
        EXPECT_EQ(t.wrong_class, 0) << reduced.name << ", n = " << n << ", " << name(d);
        total |= t;
      }
    fmt::print("{:>24}: {} outputs, largest error / bound {:.4f}\n", reduced.name, total.outputs, total.worst);
  }
}

/// Expects a bound that is sound and reached almost exactly.
void expect_reached(double difference, const Bounded& bound) {
  EXPECT_LE(difference, bound.error);
  EXPECT_GT(difference, 0.998 * bound.error);
}

TEST(Soundness, ATruncatingBlockOperationReachesItsBound) {
  // x * y = 1 + 0.9991 * 2^-23, followed by products just below 2^-23: truncation loses every one of them entirely.
  constexpr float kLow = 1 + 2895 * 0x1p-23f;
  const ArithmeticScope scope({.block = 4});
  for (Index n : {1, 2, 3, 4, 5, 8, 9, 32, 512}) {
    std::vector<float> x(static_cast<std::size_t>(n), 1 - 0x1p-24f), y(static_cast<std::size_t>(n), 0x1p-23f);
    x[0] = y[0] = kLow;
    Sum<Bounded> sum;
    for (std::size_t p = 0; p < x.size(); ++p) sum += Bounded::input(x[p]) * Bounded::input(y[p]);
    SCOPED_TRACE(n);
    expect_reached(std::fabs(block_fused<4>(x.data(), y.data(), n) - sum.value().value), sum.value());
  }
}

TEST(Soundness, FlushedPartialSumsReachTheirBound) {
  // The difference of each pair is subnormal and flushed; the terms are normal.
  constexpr float kTerms[] = {2 * FLT_MIN - 0x1p-149f, -FLT_MIN};
  const ArithmeticScope scope({.flushes_subnormals = true});
  for (Index n : {2, 3, 8, 63}) {
    std::vector<float> terms, ones(static_cast<std::size_t>(n), 1);
    Sum<Bounded> sum;
    for (Index p = 0; p < n; ++p) {
      terms.push_back(kTerms[p % 2]);
      sum += Bounded::input(terms.back());
    }
    SCOPED_TRACE(n);
    expect_reached(std::fabs(flushing(terms.data(), ones.data(), n) - sum.value().value), sum.value());
  }
}

TEST(Soundness, FewTermsAmongManyAreBoundedAsIfAlone) {
  const auto of = [](float filler) {
    Sum<Bounded> sum;
    for (int p = 0; p < 4096; ++p)
      sum += Bounded::input(p == 17 ? 1.5f : p == 3000 ? -0.7f : 1) * Bounded::input(p % 2983 == 17 ? 1 : filler);
    return sum.value();
  };
  Sum<Bounded> alone;
  for (const float x : {1.5f, -0.7f}) alone += Bounded::input(x) * Bounded::input(1);
  for (const float filler : {0.0f, 0x1p-80f}) {
    SCOPED_TRACE(filler);
    EXPECT_LE(of(filler).error, 1.001 * alone.value().error);
    EXPECT_LE(of(filler).statistical, 1.001 * alone.value().statistical);
  }
  // If truncated, each of the smallest terms may cost a unit in the last place; zeros still cost nothing.
  const ArithmeticScope scope({.accumulation = Rounding::toward_zero});
  EXPECT_GT(of(-0x1p-80f).error, 4094 * 0x1p-24);
  EXPECT_LT(of(0).error, 8 * 0x1p-23);
}

/// Returns the largest error / bound of the search when every bound is changed.
Tightness searched(const std::function<void(Bounded&)>& change) {
  Random random(3);
  Tightness total;
  for (Distribution d : kDistributions)
    for (Index n : kLengths) {
      const Products products(d, std::min<Index>(rows_for(n), 12), n, random);
      for (const Evaluation& e : kEvaluations) total |= products.compare(e.dot, change);
    }
  return total;
}

TEST(Soundness, TheSearchSeesABoundThatIsTooSmall) {
  EXPECT_LE(searched({}).worst, 1);
  EXPECT_GT(searched([](Bounded& b) { b.error /= 1000; }).worst, 1);
  EXPECT_GT(searched([](Bounded& b) { b.error *= 0.98; }).worst, 1) << "within 2% of the smallest sound bound";
  EXPECT_GT(searched([](Bounded& b) { b.error = std::max(0.0, b.error - 0x1p-150); }).worst, 1) << "underflow left out";
}

TEST(Soundness, TheSearchSeesAnArithmeticThatIsNotDeclared) {
  Random random(4);
  for (const Reduced& reduced : kReduced) {
    Tightness total;
    for (Distribution d : kDistributions)
      for (Index n : kLengths) total |= Products(d, std::min<Index>(rows_for(n), 12), n, random).compare(reduced.dot);
    EXPECT_GT(total.worst, 1) << reduced.name << " passes for plain float32";
  }
}

}  // namespace
}  // namespace assay::numbers::soundness_test
