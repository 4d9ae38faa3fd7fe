// Splitting of expressions into conditions, sides and names.
#include "contract/expression.hpp"

#include <gtest/gtest.h>

namespace assay::contract::expression_test {
namespace {

using Strings = std::vector<std::string>;

TEST(Expression, ConjunctsAreThoseOutsideBrackets) {
  EXPECT_EQ(conjuncts("a == b"), Strings({"a == b"}));
  EXPECT_EQ(conjuncts("a == b && f(c && d) &&!e"), Strings({"a == b", "f(c && d)", "!e"}));
  EXPECT_EQ(conjuncts("Shape{m && n} && s[a && b] && '&' == '&'"),
            Strings({"Shape{m && n}", "s[a && b]", "'&' == '&'"}));
}

TEST(Expression, WeakerOperatorsKeepConjunctsTogether) {
  EXPECT_EQ(conjuncts("a || b && c"), Strings({"a || b && c"}));
  EXPECT_EQ(conjuncts("a && b ? c : d"), Strings({"a && b ? c : d"}));
}

void expect_sides(std::string_view expression, std::string_view left, std::string_view right) {
  const auto sides = comparison(expression);
  ASSERT_TRUE(sides) << expression;
  EXPECT_EQ(sides->left, left);
  EXPECT_EQ(sides->right, right);
}

TEST(Expression, SidesOfTheOneOutermostComparison) {
  expect_sides("a.len() == m * k", "a.len()", "m * k");
  expect_sides("a.shape() == Shape{m, k}", "a.shape()", "Shape{m, k}");
  expect_sides("m<=16384", "m", "16384");
  expect_sides("(a < b) != c", "(a < b)", "c");
  expect_sides("a << 2 >= p->size()", "a << 2", "p->size()");
}

TEST(Expression, NoSidesWhereThereIsNoSingleComparison) {
  for (std::string_view expression : {"row_major(a)", "!overlap(c, a)", "a < b < c", "a == b || c", "a == b && c",
                                      "a ? b == c : d", "f(a == b)", "a <=> b", "== b", "a & b == c", ""})
    EXPECT_FALSE(comparison(expression)) << expression;
}

TEST(Expression, NamesWithoutMembersQualifiersAndLiterals) {
  EXPECT_EQ(identifiers("a.size() == m * k && std::max(m, 1e5) < b->n"), Strings({"a", "m", "k", "b"}));
  EXPECT_EQ(identifiers("\"text\" == 'c' + 0x1f"), Strings());
}

TEST(Expression, MalformedTextIsNamed) {
  EXPECT_FALSE(malformed("a == Shape{m, k}"));
  EXPECT_EQ(malformed("(a"), "')' is missing");
  EXPECT_EQ(malformed("a)"), "')' closes nothing");
  EXPECT_EQ(malformed("(a]"), "']' closes nothing");
  EXPECT_EQ(malformed("a; b"), "it holds ';'");
  EXPECT_EQ(malformed("a // b"), "it holds a comment");
  EXPECT_EQ(malformed("a /* b"), "it holds a comment");
  EXPECT_EQ(malformed("\"a"), "a quote is not closed");
  EXPECT_EQ(malformed("a \\"), "it holds '\\'");
  EXPECT_EQ(malformed("  "), "it is empty");
}

TEST(Expression, UsableNames) {
  for (std::string_view name : {"a", "m", "src", "q_weight", "x2"}) EXPECT_TRUE(usable_name(name)) << name;
  for (std::string_view name : {"", "A", "2x", "_x", "x_", "x__y", "float", "requires", "pack", "a-b", "ä"})
    EXPECT_FALSE(usable_name(name)) << name;
}

TEST(Expression, WholeNumbersAreEvaluated) {
  const auto value = [](std::string_view text) {
    return evaluated(text,
                     [](std::string_view name) { return name == "s" ? std::optional<std::int64_t>(7) : std::nullopt; });
  };
  EXPECT_EQ(value("12"), 12);
  EXPECT_EQ(value("s"), 7);
  EXPECT_EQ(value("2 * s + 1"), 15);
  EXPECT_EQ(value("2 * (s + 1)"), 16);
  EXPECT_EQ(value("s - 3 - 2"), 2);
  EXPECT_EQ(value("100 / s % 10"), 4);
  for (const char* none : {"t", "", "s +", "s s", "(s", "s / 0", "s % (s - 7)", "s < 3", "1 << 3", "1.5", "-s",
                           "9223372036854775807 + s", "9223372036854775807 * 2", "\"s\""})
    EXPECT_EQ(value(none), std::nullopt) << none;
}

TEST(Expression, SpacesGo) { EXPECT_EQ(without_spaces("m * k"), "m*k"); }

}  // namespace
}  // namespace assay::contract::expression_test
