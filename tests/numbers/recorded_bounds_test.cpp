// Compares results of the operations and forms of Bounded, on operands at the boundaries of their branches (zeros,
// subnormals, the ends of formats and of double, infinities; errors from none to more than the value), with the results
// recorded in recorded_bounds.json. The searches in this folder find bounds that are too small; this test finds bounds
// that have become too large.
//
//   ASSAY_RECORD=1 test_numbers --gtest_filter='RecordedBounds*'    records the current results: the difference is the
//   change's effect
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/attention_forms.hpp"
#include "core/any_formula.hpp"
#include "core/scaled_sum.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/oracle.hpp"
#include "falsify/engine/trial.hpp"
#include "reference/orders.hpp"

namespace assay::numbers::recorded_bounds_test {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
// Recorded decimals of a sum of logarithms: math libraries differ in the seventeenth digit of a number.
constexpr int kDigits = 7;

const Arithmetic kArithmetics[] = {
    {},
    {.inputs = Format::tf32, .block = 4, .functions = FunctionLibrary::cuda},
    {.inputs = Format::tf32x3, .block = 4},
    {.functions = FunctionLibrary::highway, .online_tile = 16},
    {.flushes_subnormals = true, .functions = FunctionLibrary::cuda},
    {.fuses_products = false, .functions = FunctionLibrary::vulkan, .online_tile = 1},
    {.inputs = Format::bf16, .input_rounding = Rounding::toward_zero, .accumulation = Rounding::toward_zero},
    {.inputs = Format::f16, .accumulator = Format::f16, .functions = FunctionLibrary::cuda_exp2},
    {.inputs = Format::f16, .flushes_subnormals = true, .functions = FunctionLibrary::octant, .online_tile = 3},
};

/// Digest of many results: a weighted sum over all numbers, and the class of each.
class Digest {
 public:
  void add(const Bounded& x) {
    for (const double part : {x.value, x.error, x.statistical}) {
      const int kind = std::isnan(part) ? 0 : std::isinf(part) ? 1 : part == 0 ? 2 : 3;
      note(kind * 2 + (kind != 0 && std::signbit(part)));
      if (kind == 3) logs_ += (1 + static_cast<double>(count_ % 13) / 16) * std::log2(std::fabs(part));
    }
    note(x.may_overflow * 2 + x.empty);
  }
  double logs() const { return logs_; }
  std::uint64_t classes() const { return classes_; }

 private:
  void note(int x) { classes_ = (classes_ ^ static_cast<std::uint64_t>(x + 1)) * 0x100000001b3U, ++count_; }
  double logs_ = 0;
  std::uint64_t classes_ = 0xcbf29ce484222325U, count_ = 0;
};

std::vector<double> either_sign(const std::vector<double>& magnitudes) {
  std::vector<double> values{kNaN};
  for (const double x : magnitudes) values.push_back(x), values.push_back(-x);
  return values;
}

const std::vector<double>& all_values() {
  static const std::vector<double> values =
      either_sign({0,       0x1p-149, 3e-41,      FLT_MIN, 1.5 * FLT_MIN,   0x1.1p-60, 1e-20,
                   1e-7,    0.1,      0.1F,       0.5,     0x1p-14,         1,         1.9,
                   3,       18,       11.0888793, 88.5,    103.5,           709.5,     65504,
                   65519,   65520,    3e19,       FLT_MAX, 0x1.fffffefp127, 0x1p128,   1e200,
                   DBL_MAX, kInfinity});
  return values;
}

const std::vector<double>& some_values() {
  static const std::vector<double> values =
      either_sign({0, 0x1p-149, 0x1.0000015p-128, 0x1.8p-128, 0x1.2p-127, FLT_MIN, 1e-20, 0x1.8p-16, 0.1, 1, 1.9, 88,
                   65504, 3e19, 0x1.ffffff8p125, FLT_MAX, 1e200, kInfinity});
  return values;
}

/// A value with an error of relevant size. Variant 0 is exact.
constexpr int kVariants = 10;
Bounded with_error(double value, int variant) {
  const double size = std::isfinite(value) ? std::fabs(value) : 1;
  const double errors[kVariants] = {0,        0x1p-24 * size, 0x1p-10 * size, 0.4 * size, size, 2 * size + 1e-3,
                                    0x1p-150, 1e39,           kInfinity,      0};
  const double error = errors[variant];
  return {value, error, error / 4, variant == 3 || variant == 9};
}

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : next_(seed) {}
  std::size_t below(std::size_t n) { return next_() % n; }
  Bounded operand() {
    const auto& values = below(3) == 0 ? all_values() : some_values();
    const std::size_t variant = below(4);
    return with_error(values[below(values.size())], static_cast<int>(variant == 3 ? below(kVariants) : variant));
  }
  /// Returns a value of moderate size, as most numbers are: within a few binades of 2^exponent.
  Bounded ordinary(int exponent) {
    const double mantissa = static_cast<double>(static_cast<float>(1 + static_cast<double>(below(1 << 20)) * 0x1p-20));
    const std::size_t shift = below(4), negative = below(2), variant = below(4);
    return with_error(std::ldexp(negative == 1 ? -mantissa : mantissa, exponent - static_cast<int>(shift)),
                      static_cast<int>(variant));
  }

 private:
  std::mt19937_64 next_;
};

/// Results by group: one number for each group, and one for the classes of all.
class Table {
 public:
  template <class F>
  void group(const F& fill) {
    Digest digest;
    fill(digest);
    sums_.push_back(std::strtod(fmt::format("{:.{}f}", digest.logs(), kDigits).c_str(), nullptr));
    classes_ = classes_ * 31 + digest.classes();
  }
  json entry() const { return {{"classes", fmt::format("{:016x}", classes_)}, {"sums", sums_}}; }

 private:
  std::vector<double> sums_;
  std::uint64_t classes_ = 0;
};

std::string path() { return std::string(ASSAY_NUMBERS_TESTS) + "/recorded_bounds.json"; }

json read() {
  std::ifstream in(path());
  return in ? json::parse(in) : json::object();
}

void expect_recorded(const std::string& name, const json& now) {
  if (std::getenv("ASSAY_RECORD") != nullptr) {
    json all = read();
    all[name] = now;
    std::ofstream out(path());
    std::string before = "{\n";
    for (const auto& [key, entry] : all.items()) out << before << json(key) << ": " << entry, before = ",\n";
    out << "\n}\n";
    return;
  }
  static const json all = read();
  ASSERT_TRUE(all.contains(name)) << name << " is not recorded: run this test with ASSAY_RECORD=1";
  const json& recorded = all[name];
  EXPECT_EQ(now["classes"], recorded["classes"])
      << name << ": zeros, infinities or overflow where there was none, or none where there was";
  ASSERT_EQ(now["sums"].size(), recorded["sums"].size()) << name;
  for (std::size_t i = 0; i < now["sums"].size(); ++i)
    EXPECT_NEAR(now["sums"][i].get<double>(), recorded["sums"][i].get<double>(), 1.5 * std::pow(10, -kDigits))
        << name << ", group " << i;
}

/// Records `fill` under each arithmetic whose library guarantees the functions in use.
template <class F>
void expect_recorded_everywhere(const std::string& name, const F& fill) {
  int computed = 0;
  for (const Arithmetic& arithmetic : kArithmetics) {
    const ArithmeticScope scope(arithmetic);
    const std::string entry = fmt::format("{} {} {}", name, &arithmetic - kArithmetics, to_string(arithmetic));
    Table table;
    try {
      fill(table);
    } catch (const std::logic_error&) {  // the library guarantees nothing for this function
      EXPECT_FALSE(read().contains(entry)) << entry << " was recorded, and is promised no more";
      continue;
    }
    ++computed;
    expect_recorded(entry, table.entry());
  }
  EXPECT_GE(computed, 1) << name;
}

template <class F>
void unary(const std::string& name, const F& f) {
  expect_recorded_everywhere(name, [&](Table& table) {
    for (const double value : all_values())
      table.group([&](Digest& digest) {
        for (int variant = 0; variant < kVariants; ++variant) digest.add(f(with_error(value, variant)));
      });
  });
}

template <class F>
void binary(const std::string& name, const F& f) {
  expect_recorded_everywhere(name, [&](Table& table) {
    for (const double x : some_values())
      table.group([&](Digest& digest) {
        for (const double y : some_values())
          for (int vx = 0; vx < kVariants; vx += vx < 5 ? 1 : 4)
            for (int vy = 0; vy < kVariants; vy += vy < 5 ? 1 : 4) digest.add(f(with_error(x, vx), with_error(y, vy)));
      });
  });
}

/// Records `groups` groups of forty results on drawn operands.
template <class F>
void drawn(const std::string& name, int groups, const F& f) {
  expect_recorded_everywhere(name, [&](Table& table) {
    Draws draws(7);
    for (int g = 0; g < groups; ++g)
      table.group([&](Digest& digest) {
        for (int i = 0; i < 40; ++i) digest.add(f(draws));
      });
  });
}

Bounded of_product(const Product& p) { return {p.value, p.error, p.statistical, p.may_overflow}; }

TEST(RecordedBounds, Functions) {
  unary("negative", [](const Bounded& x) { return -x; });
  unary("sqrt", [](const Bounded& x) { return sqrt(x); });
  unary("exp", [](const Bounded& x) { return exp(x); });
  unary("expm1", [](const Bounded& x) { return expm1(x); });
  unary("log", [](const Bounded& x) { return log(x); });
  unary("log1p", [](const Bounded& x) { return log1p(x); });
  unary("sin", [](const Bounded& x) { return sin(x); });
  unary("cos", [](const Bounded& x) { return cos(x); });
  unary("tanh", [](const Bounded& x) { return tanh(x); });
  unary("reciprocal_sqrt", [](const Bounded& x) { return reciprocal_sqrt(x); });
  unary("sigmoid", [](const Bounded& x) { return sigmoid(x); });
  unary("sigmoid_complement", [](const Bounded& x) { return sigmoid_complement(x); });
}

TEST(RecordedBounds, Storage) {
  unary("stored f16", [](const Bounded& x) { return stored(DType::f16, x); });
  unary("stored bf16", [](const Bounded& x) { return stored(DType::bf16, x); });
  unary("stored f32", [](const Bounded& x) { return stored(DType::f32, x); });
  unary("factor", [](const Bounded& x) { return factor(x); });
  unary("shift_by", [](const Bounded& x) { return shift_by(x); });
  unary("input", [](const Bounded& x) { return Bounded::input(static_cast<float>(x.value)); });
  unary("constant", [](const Bounded& x) { return Bounded(x.value); });
}

TEST(RecordedBounds, OfTwo) {
  binary("sum", [](const Bounded& x, const Bounded& y) { return x + y; });
  binary("difference", [](const Bounded& x, const Bounded& y) { return x - y; });
  binary("product", [](const Bounded& x, const Bounded& y) { return Bounded(x * y); });
  binary("exact product", [](const Bounded& x, const Bounded& y) { return of_product(x * y); });
  binary("division", [](const Bounded& x, const Bounded& y) { return x / y; });
  binary("quotient", [](const Bounded& x, const Bounded& y) { return quotient(x, y); });
  binary("maximum", [](const Bounded& x, const Bounded& y) { return maximum(x, y); });
  binary("log_of_sum", [](const Bounded& x, const Bounded& y) { return log_of_sum(x, y); });
  binary("softmax_term",
         [](const Bounded& x, const Bounded& y) { return softmax_term(x, y, Rescalings<Bounded>::most(40)); });
  binary("attention_weight", [](const Bounded& x, const Bounded& y) { return attention_weight(x, y); });
  binary("any_order", [](const Bounded& x, const Bounded& y) { return reference::any_order(x, y); });
  binary("without_weight", [](const Bounded& x, const Bounded& y) { return without_weight(x.value, y); });
}

/// Covers operands near the largest double, whose successor is infinite, and errors that reach exactly to another
/// operand.
TEST(RecordedBounds, OfTwoAtTheEndsOfDouble) {
  const auto at_the_ends = [](const std::string& name, const auto& f) {
    static const std::vector<double> values = either_sign({0, 0x1p-1022, 1, FLT_MAX, 0x1p1023, DBL_MAX, kInfinity});
    expect_recorded_everywhere(name + " at the ends", [&](Table& table) {
      for (const double x : values)
        table.group([&](Digest& digest) {
          for (const double y : values)
            for (const int vx : {0, 1, 4, 9})
              for (const int vy : {0, 1, 4, 9}) digest.add(f(with_error(x, vx), with_error(y, vy)));
        });
    });
  };
  at_the_ends("sum", [](const Bounded& x, const Bounded& y) { return x + y; });
  at_the_ends("product", [](const Bounded& x, const Bounded& y) { return Bounded(x * y); });
  at_the_ends("exact product", [](const Bounded& x, const Bounded& y) { return of_product(x * y); });
  at_the_ends("quotient", [](const Bounded& x, const Bounded& y) { return quotient(x, y); });
  at_the_ends("log_of_sum", [](const Bounded& x, const Bounded& y) { return log_of_sum(x, y); });
  at_the_ends("softmax_term",
              [](const Bounded& x, const Bounded& y) { return softmax_term(x, y, Rescalings<Bounded>::most(40)); });
  at_the_ends("attention_weight", [](const Bounded& x, const Bounded& y) { return attention_weight(x, y); });
  at_the_ends("any_formula", [](const Bounded& x, const Bounded& y) { return any_formula(x, y); });
  at_the_ends("any_order", [](const Bounded& x, const Bounded& y) { return reference::any_order(x, y); });
  at_the_ends("product of three", [](const Bounded& x, const Bounded& y) { return product(x, y, Bounded(0.5)); });
  at_the_ends("product of four", [](const Bounded& x, const Bounded& y) {
    return reference::product_of_four(x, Bounded(0.5), y, Bounded(2.0));
  });
  at_the_ends("scaled_difference",
              [](const Bounded& x, const Bounded& y) { return scaled_difference(x, y, Bounded(1.0)); });
  at_the_ends("weighted_mean", [](const Bounded& x, const Bounded& y) {
    return reference::weighted_mean(Bounded(0.75), x, Bounded(0.25), y);
  });
  at_the_ends("scaled dot", [](const Bounded& x, const Bounded& y) {
    ScaledDot<Bounded> dot(Bounded(0.125));
    dot.add(x, y), dot.add(Bounded(1.0), Bounded(3.0));
    return dot.value();
  });
  at_the_ends("mean of two", [](const Bounded& x, const Bounded& y) {
    const Bounded weights[] = {Bounded(0.25), Bounded(0.5)}, values[] = {x, y};
    const WeightedMean<Bounded> of(View<const Bounded>(weights, Shape{2}), Bounded(0.0));
    return of.of([&](Index j) { return values[j]; });
  });
  at_the_ends("sum of two", [](const Bounded& x, const Bounded& y) {
    Sum<Bounded> sum;
    sum += x, sum += y;
    return sum.value();
  });
}

TEST(RecordedBounds, OfSeveral) {
  drawn("product of three", 40, [](Draws& d) {
    const Bounded a = d.operand(), b = d.operand(), c = d.operand();
    return product(a, b, c);
  });
  drawn("product of four", 40, [](Draws& d) {
    const Bounded a = d.operand(), b = d.operand(), c = d.operand(), e = d.operand();
    return reference::product_of_four(a, b, c, e);
  });
  drawn("ordinary product of four", 8, [](Draws& d) {
    const Bounded a = d.ordinary(60), b = d.ordinary(60), c = d.ordinary(4), e = d.ordinary(-4);
    return reference::product_of_four(a, b, c, e);
  });
  drawn("scaled_difference", 40, [](Draws& d) {
    const Bounded r = d.operand(), a = d.operand(), b = d.operand();
    return scaled_difference(r, a, b);
  });
  drawn("weighted_mean", 40, [](Draws& d) {
    const Bounded keep = with_error(0.9, static_cast<int>(d.below(2))),
                  take = with_error(0.1, static_cast<int>(d.below(2)));
    const Bounded a = d.operand(), b = d.operand();
    return reference::weighted_mean(keep, a, take, b);
  });
  drawn("ordinary weighted_mean", 8, [](Draws& d) {
    const Bounded keep = with_error(0.9, static_cast<int>(d.below(2))),
                  take = with_error(0.1, static_cast<int>(d.below(2)));
    const Bounded a = d.ordinary(0), b = d.ordinary(1);
    return reference::weighted_mean(keep, a, take, b);
  });
  drawn("attention_weight of terms", 16, [](Draws& d) {
    const Bounded score = d.ordinary(3), shift = d.ordinary(3);
    return attention_weight(score, shift, Rescalings<Bounded>::most(1 + d.below(50)));
  });
}

/// Number and size of terms.
struct Length {
  std::size_t terms;
  int exponent;
};
Length length(Draws& d) {
  constexpr std::size_t kTerms[] = {0, 1, 2, 3, 5, 17, 40, 150, 540, 700};
  constexpr int kExponents[] = {0, 0, 0, 10, -70, -130, 60, 120, 126};
  const std::size_t terms = kTerms[d.below(std::size(kTerms))];
  return {terms, kExponents[d.below(std::size(kExponents))]};
}

TEST(RecordedBounds, Sums) {
  drawn("sum of terms", 24, [](Draws& d) {
    const auto [terms, exponent] = length(d);
    Sum<Bounded> sum;
    for (std::size_t i = 0; i < terms; ++i) sum += d.ordinary(exponent);
    return sum.value();
  });
  drawn("sum with small terms", 24, [](Draws& d) {
    const auto [terms, exponent] = length(d);
    Sum<Bounded> sum;
    for (std::size_t i = 0; i < terms; ++i) sum += d.ordinary(d.below(3) == 0 ? -75 : exponent);
    return sum.value();
  });
  drawn("sum of one sign", 8, [](Draws& d) {
    const auto [terms, exponent] = length(d);
    Sum<Bounded> sum;
    for (std::size_t i = 0; i < terms; ++i) {
      const Bounded x = d.ordinary(exponent);
      sum += Bounded(std::fabs(x.value), x.error, x.statistical, false);
    }
    return sum.value();
  });
  drawn("sum of any terms", 24, [](Draws& d) {
    Sum<Bounded> sum;
    for (std::size_t i = d.below(5); i > 0; --i) sum += d.operand();
    return sum.value();
  });
  drawn("scaled sum", 24, [](Draws& d) {
    const auto [terms, exponent] = length(d);
    ScaledSum<Bounded> sum(d.ordinary(static_cast<int>(d.below(3)) * 40 - 40));
    for (std::size_t i = 0; i < terms; ++i) {
      const Bounded x = d.ordinary(exponent), a = d.ordinary(exponent / 2), b = d.ordinary(0);
      if (d.below(2) == 0) sum += x;
      sum.scaled(a, b);
    }
    return sum.value();
  });
  drawn("sum beyond double", 16, [](Draws& d) {
    constexpr double kLarge[] = {DBL_MAX, -DBL_MAX, 1e308, -1e308, 1e300, 1};
    Sum<Bounded> sum;
    for (std::size_t i = 1 + d.below(4); i > 0; --i) {
      const double x = kLarge[d.below(std::size(kLarge))];
      sum += with_error(x, static_cast<int>(d.below(6)));
    }
    return sum.value();
  });
  drawn("sum of products", 24, [](Draws& d) {
    const auto [terms, exponent] = length(d);
    Sum<Bounded> sum;
    for (std::size_t i = 0; i < terms; ++i) {
      const Bounded x = d.ordinary(exponent), y = d.ordinary(0);
      sum += x * y;
    }
    return sum.value();
  });
}

TEST(RecordedBounds, Attention) {
  const auto dot = [](Draws& d, const auto& operand) {
    ScaledDot<Bounded> sum(with_error(d.below(4) == 0 ? 0x1p100 : 0.125, static_cast<int>(d.below(3))));
    for (std::size_t i = d.below(20); i > 0; --i) {
      const Bounded x = operand(), y = operand();
      sum.add(x, y);
    }
    return sum.value();
  };
  drawn("scaled dot", 16, [&](Draws& d) {
    const int exponent = length(d).exponent / 2;
    return dot(d, [&] { return d.ordinary(exponent); });
  });
  drawn("scaled dot of any", 16, [&](Draws& d) { return dot(d, [&] { return d.operand(); }); });
  const auto mean = [](Draws& d, const auto& value) {
    std::vector<Bounded> weights;
    for (std::size_t i = 1 + d.below(30); i > 0; --i) {
      const Bounded w = d.ordinary(0);
      const std::size_t kind = d.below(40);
      weights.emplace_back(kind < 5                       ? 0
                           : kind == 5 && d.below(9) == 0 ? kInfinity
                                                          : std::fabs(w.value),
                           w.error / 8, w.statistical / 8, false);
    }
    std::vector<Bounded> values;
    for (std::size_t i = 0; i < weights.size(); ++i) values.push_back(value());
    const WeightedMean<Bounded> of(View<const Bounded>(weights.data(), Shape{static_cast<Index>(weights.size())}),
                                   Bounded(0.0));
    return of.of([&](Index j) { return values[static_cast<std::size_t>(j)]; });
  };
  drawn("weighted mean of many", 16, [&](Draws& d) {
    const int exponent = length(d).exponent;
    return mean(d, [&] { return d.ordinary(exponent); });
  });
  drawn("weighted mean of any", 16, [&](Draws& d) { return mean(d, [&] { return d.operand(); }); });
}

/// The reference's outputs with their bounds, for the first small case of each obligation.
class OfReferences : public testing::TestWithParam<const OpDescriptor*> {};

TEST_P(OfReferences, AreRecorded) {
  using namespace falsify;
  const OpDescriptor& op = *GetParam();
  std::vector<Problem> problems;
  for (const Obligation& o : obligations(op.name)) {
    for (std::uint64_t n = problems.size(); n < problems.size() + 200; ++n) {
      const Case c = draw(op, *o.info, 13, n, {.largest = 20}).value();
      Index elements = 0, largest = 0;
      for (const TensorInfo& t : op.tensors)
        elements += t.shape(c.dims).size(), largest = std::max(largest, t.shape(c.dims).size());
      if (elements > 3000 || largest < 8) continue;
      problems.push_back(make_problem(op, c, {}, DType::f32));
      break;
    }
  }
  ASSERT_FALSE(problems.empty());
  expect_recorded_everywhere(fmt::format("reference {}", op.name), [&](Table& table) {
    for (const Problem& problem : problems)
      table.group([&](Digest& digest) {
        std::vector<std::vector<Bounded>> held;
        std::vector<View<Bounded>> views;
        for (std::size_t t = 0; t < op.tensors.size(); ++t) {
          held.emplace_back();
          for (const float x : problem.values[t]) held.back().push_back(Bounded::input(x));
          held.back().resize(static_cast<std::size_t>(problem.shape(static_cast<int>(t)).size()));
          views.emplace_back(held.back().data(), problem.shape(static_cast<int>(t)));
        }
        oracle(op.name).bounded(views, problem.params);
        for (const int t : outputs_of(op))
          for (const Bounded& x : held[static_cast<std::size_t>(t)]) digest.add(x);
      });
  });
}

INSTANTIATE_TEST_SUITE_P(RecordedBounds, OfReferences, testing::ValuesIn(operations().begin(), operations().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace assay::numbers::recorded_bounds_test
