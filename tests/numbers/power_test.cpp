// The bounds detect kernels that compute in less precision than they declare.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "search.hpp"

namespace assay::numbers::power_test {
namespace {

/// float16 has 11 bits and a short exponent; for N(0, 1) sums below 4096 only its precision matters.
constexpr Evaluation kWrong[] = {
    {"tf32 inputs truncated", narrow_inputs<11, Rounding::toward_zero>},
    {"tf32 inputs to nearest", narrow_inputs<11, Rounding::nearest>},
    {"bf16 inputs", narrow_inputs<8, Rounding::nearest>},
    {"bf16 accumulator", narrow_accumulator<8>},
    {"11-bit accumulator", narrow_accumulator<11>},
    {"toward zero", toward_zero},
};

TEST(Power, ReducedPrecisionExceedsABound) {
  Random random(5);
  fmt::print("largest error / bound on N(0, 1): worst case, statistical\n{:>24}", "n");
  for (Index n : {16, 256, 1024, 4096}) fmt::print("  {:>17}", n);
  std::vector<Products> products;
  for (Index n : {16, 256, 1024, 4096}) products.emplace_back(Distribution::gaussian, 24, n, random);
  for (const Evaluation& wrong : kWrong) {
    fmt::print("\n{:>24}", wrong.name);
    for (const Products& p : products) {
      const Tightness t = p.compare(wrong.dot);
      fmt::print("  {:>8.2g} {:>8.2g}", t.worst, t.statistical);
      // Rounding toward zero is within a factor of two of correct: the audit detects it, not a bound.
      EXPECT_TRUE(wrong.dot == toward_zero || t.statistical > 1) << wrong.name << " passes at n = " << p.n;
      EXPECT_TRUE(wrong.dot != narrow_accumulator<8> || t.worst > 1) << wrong.name << " passes at n = " << p.n;
    }
  }
  fmt::print("\n");
}

}  // namespace
}  // namespace assay::numbers::power_test
