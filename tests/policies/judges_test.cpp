// Each policy's measure on values on both sides of its project's threshold. The figures are copied again from the
// projects' sources, so that a relaxed or tightened rule is detected.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "falsify/policies/measures.hpp"
#include "falsify/policies/policy.hpp"

namespace assay::falsify::policies {
namespace {

enum class Sharp { yes, too_lax, too_strict };

/// Checks that a result of 1 is accepted with slightly less error than `error`, and rejected with slightly more.
Sharp sharp(const Policy& policy, const Rule& rule, double error, DType dtype = DType::f32, bool tf32 = false) {
  const std::vector<float> want{1};
  const auto rejected = [&](double by) {
    const std::vector<float> got{static_cast<float>(1 - by)};
    return policy.rejects(rule, {.tensor = "y", .dtype = dtype, .got = got, .want = want, .tf32 = tf32}).has_value();
  };
  if (rejected(0.9 * error)) return Sharp::too_strict;
  return rejected(1.1 * error) ? Sharp::yes : Sharp::too_lax;
}

Rule rule_of(std::string_view policy_name, std::string_view op) { return *policy(policy_name).rules_for(op).front(); }

struct Expected {
  std::string_view policy, op;
  double error;
};

class Thresholds : public testing::TestWithParam<Expected> {};

TEST_P(Thresholds, AreThoseOfTheProject) {
  const auto& [name, op, error] = GetParam();
  EXPECT_EQ(sharp(policy(name), rule_of(name, op), error), Sharp::yes) << name << " " << op;
}

/// Planted mistakes in a rule are detected.
TEST_P(Thresholds, PlantedMistakesAreSeen) {
  const auto& [name, op, error] = GetParam();
  EXPECT_EQ(sharp(policy(name), rule_of(name, op), error / 4), Sharp::too_lax) << name << " " << op;
  EXPECT_EQ(sharp(policy(name), rule_of(name, op), error * 4), Sharp::too_strict) << name << " " << op;
}

INSTANTIATE_TEST_SUITE_P(
    Policies, Thresholds,
    testing::Values(Expected{"ggml", "silu", std::sqrt(1e-7)}, Expected{"ggml", "matmul", std::sqrt(5e-4)},
                    Expected{"ggml", "softmax", std::sqrt(1e-6)}, Expected{"ggml", "attention", std::sqrt(5e-4)},
                    Expected{"PyTorch", "matmul", 1e-5 + 1.3e-6}, Expected{"PyTorch", "softmax", 1e-5 + 1.3e-6},
                    Expected{"oneDNN", "silu", 4e-5}, Expected{"oneDNN", "scale", 4e-6},
                    Expected{"oneDNN", "rmsnorm", 5e-7}, Expected{"llm.c", "linear", 1e-1},
                    Expected{"llm.c", "softmax", 1e-4}, Expected{"llm.c", "residual_add", 1e-5},
                    Expected{"llm.c", "attention", 1e-3}, Expected{"llm.c", "rmsnorm", 1e-5},
                    Expected{"PyTorch devices", "matmul", 2e-3}, Expected{"leaderboard", "silu", 2e-2},
                    Expected{"leaderboard", "nf4_matmul", 2e-2}));

/// A rule with a limit a hundred times too large or too small is detected.
TEST(Judges, PlantedLimitsAreSeen) {
  Rule lax = rule_of("ggml", "silu"), strict = lax;
  lax.limit *= 100, strict.limit /= 100;
  EXPECT_EQ(sharp(policy("ggml"), lax, std::sqrt(1e-7)), Sharp::too_lax);
  EXPECT_EQ(sharp(policy("ggml"), strict, std::sqrt(1e-7)), Sharp::too_strict);
  lax = strict = rule_of("llm.c", "softmax");
  lax.limit2 *= 100, strict.limit2 /= 100;
  EXPECT_EQ(sharp(policy("llm.c"), lax, 1e-4), Sharp::too_lax);
  EXPECT_EQ(sharp(policy("llm.c"), strict, 1e-4), Sharp::too_strict);
}

TEST(Judges, OfOtherTypes) {
  EXPECT_EQ(sharp(policy("PyTorch"), rule_of("PyTorch", "rmsnorm"), 1e-3 + 1e-5, DType::f16), Sharp::yes);
  EXPECT_EQ(sharp(policy("PyTorch"), rule_of("PyTorch", "rmsnorm"), 1.6e-2 + 1e-5, DType::bf16), Sharp::yes);
  EXPECT_EQ(sharp(policy("PyTorch"), rule_of("PyTorch", "matmul"), 27 * 0.05, DType::f32, true), Sharp::yes);
  EXPECT_EQ(sharp(policy("llm.c"), rule_of("llm.c", "attention"), 1e-2, DType::f16), Sharp::yes);
  EXPECT_EQ(sharp(policy("llm.c"), rule_of("llm.c", "rmsnorm"), 0.079, DType::bf16), Sharp::yes);
}

Rejection compare(std::string_view name, std::string_view op, float got, float want) {
  const std::vector<float> g{got}, w{want};
  return policy(name).rejects(rule_of(name, op), {.tensor = "y", .dtype = DType::f32, .got = g, .want = w});
}

TEST(Judges, ExactProducts) {
  EXPECT_FALSE(compare("oneDNN", "matmul", 1, 1));
  EXPECT_TRUE(compare("oneDNN", "matmul", std::nextafter(1.0F, 2.0F), 1));
  EXPECT_TRUE(compare("ggml", "transpose", std::nextafter(1.0F, 2.0F), 1));
}

/// compare_p2p has no precision for nearly zero values, for any threshold.
TEST(Judges, TinyExpectations) {
  EXPECT_FALSE(compare("oneDNN", "matmul", 1e-7F, 0));
  EXPECT_TRUE(compare("oneDNN", "matmul", 2e-7F, 0));
  EXPECT_TRUE(compare("oneDNN", "matmul", 2e-5F + 1e-7F, 2e-5F));
}

/// Policies differ in their treatment of NaN and Inf.
TEST(Judges, NonFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compare("ggml", "silu", nan, nan));         // any NaN fails
  EXPECT_FALSE(compare("PyTorch", "silu", nan, nan));     // equal_nan
  EXPECT_FALSE(compare("oneDNN", "silu", nan, nan));      // compare_extreme_values
  EXPECT_FALSE(compare("llm.c", "linear", nan, 1));       // no comparison with NaN is true
  EXPECT_FALSE(compare("llm.c", "linear", 5, inf));       // masked
  EXPECT_TRUE(compare("leaderboard", "silu", nan, nan));  // torch.allclose
  EXPECT_TRUE(compare("PyTorch", "silu", inf, -inf));
  EXPECT_TRUE(compare("ggml", "silu", inf, 1));
}

TEST(Judges, Measures) {
  const std::vector<float> a{3, 4}, b{3, 4.5F}, zeros{0, 0};
  EXPECT_DOUBLE_EQ(nmse(a, b), 0.25 / 25);
  EXPECT_TRUE(std::isnan(nmse(zeros, zeros)));  // which ggml accepts: NaN > limit is false
  EXPECT_NEAR(mean_absolute_asymmetry(a, b), 0.5 / 8.5 / 2, 1e-8);
  EXPECT_DOUBLE_EQ(mean_absolute_asymmetry(a, zeros), 1);
  EXPECT_TRUE(std::isnan(mean_absolute_asymmetry(zeros, zeros)));
}

TEST(Judges, NoSuchPolicy) { EXPECT_THROW(policy("numpy"), InputError); }

}  // namespace
}  // namespace assay::falsify::policies
