// Audit of the oracle: compares double with fifty digits. The bound's allowance for double covers the difference.
#include "core/digits50.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/bounded.hpp"
#include "reference/gemv.hpp"
#include "reference/matmul_nt.hpp"
#include "vectors.hpp"

namespace assay::numbers::digits50_test {
namespace {

double absolute_difference(const Digits50& x, double y) {
  const Digits50 difference = x - Digits50(y);
  return static_cast<double>(difference < 0 ? Digits50(-difference) : difference);
}

TEST(Digits, TheDoubleOracleIsWithinItsShareOfTheBound) {
  Random random(6);
  double worst = 0;
  for (Distribution d : kDistributions)
    for (Index n : {1, 7, 64, 1000}) {
      std::vector<Bounded> bounded;
      std::vector<Digits50> exact;
      for (bool left : {true, false})
        for (float x : make_vector(d, left, n, random)) {
          bounded.push_back(Bounded::input(x));
          exact.emplace_back(x);
        }
      Bounded value;
      Digits50 truth, magnitude = 0;
      reference::gemv<Bounded>({bounded.data(), {1, n}}, {bounded.data() + n, {n}}, {&value, {1}});
      reference::gemv<Digits50>({exact.data(), {1, n}}, {exact.data() + n, {n}}, {&truth, {1}});
      for (Index p = 0; p < n; ++p) {
        const Digits50 term = exact[static_cast<std::size_t>(p)] * exact[static_cast<std::size_t>(n + p)];
        magnitude += term < 0 ? Digits50(-term) : term;
      }
      const double share = static_cast<double>(n) * 0x1p-53 * static_cast<double>(magnitude);
      const double distance = absolute_difference(truth, value.value);
      EXPECT_LE(distance, share) << name(d) << ", n = " << n;
      EXPECT_LE(share, value.error * 0x1p-20) << "the oracle's own error is no part of the bound's size";
      if (share > 0) worst = std::max(worst, distance / share);
    }
  EXPECT_GT(worst, 1e-3) << "an audit that never sees a rounding of the oracle audits nothing";
  fmt::print("largest |double - 50 digits| over n 2^-53 sum |terms|: {:.3f}\n", worst);
}

}  // namespace
}  // namespace assay::numbers::digits50_test
