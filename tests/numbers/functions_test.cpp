// The functions and forms of Bounded are sound: no correct evaluation exceeds its bound, over all magnitudes, with and
// without an inherited error of the argument. The search also detects each omitted term of a bound.
#include "functions.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace assay::numbers::functions_test {
namespace {

/// The term that a planted fault omits from a bound.
enum class Left { nothing, inherited, rounding, smallest };

struct Found {
  double worst = 0;  ///< largest |got - value| / error
  long compared = 0, other_class = 0, wrong_class = 0;
  std::string where;
};

int class_of(double x) { return std::isnan(x) ? 3 : std::isinf(x) ? (x > 0 ? 1 : 2) : 0; }

template <class... Floats>
void record(Found& found, float got, const Bounded& want, double error, Floats... arguments) {
  const auto note = [&] {
    std::string of;
    ((of += fmt::format(" {}", arguments)), ...);
    found.where = fmt::format("got {} of{}, want {} within {}", got, of, want.value, error);
  };
  if (want.may_overflow && class_of(got) != 0) {
    ++found.other_class;
    return;
  }
  ++found.compared;
  if (class_of(got) != class_of(want.value)) {
    if (found.wrong_class++ == 0) note();
    return;
  }
  if (class_of(got) != 0 || got == want.value) return;
  const double difference = std::fabs(got - want.value);
  const double ratio = error > 0 ? difference / error : INFINITY;
  if (!(ratio <= found.worst)) {
    found.worst = ratio;
    if (found.wrong_class == 0) note();
  }
}

/// Returns the bound without a term: the argument's error, the function's own, or the unit of the smallest subnormals.
double left_out(Left left, const Bounded& full, const Bounded& of_exact_arguments, double smallest) {
  switch (left) {
    case Left::nothing: return full.error;
    case Left::inherited: return of_exact_arguments.error;
    case Left::rounding: return std::max(0.0, full.error - of_exact_arguments.error);
    case Left::smallest: return std::max(0.0, full.error - smallest);
  }
  return 0;
}

Bounded without_error(const Bounded& x) { return {x.value, 0, 0, x.may_overflow}; }

Found search(const Unary& f, Left left, int samples = 200'000) {
  Random random(derive(1, f.name));
  Found found;
  const double smallest = f.name == "stored to f16" ? 0x1p-25 : f.name == "stored to bf16" ? 0x1p-134 : 0x1p-149;
  for (int n = 0; n < samples; ++n) {
    const Number x = argument(random);
    const Bounded want = f.bound(x.want);
    const double error = left_out(left, want, f.bound(without_error(x.want)), smallest);
    for (const auto way : f.ways) record(found, way(x.got), want, error, x.got);
  }
  return found;
}

Found search(const Form& f, Left left, int samples = 200'000) {
  Random random(derive(2, f.name));
  Found found;
  for (int n = 0; n < samples; ++n) {
    const Number x = argument(random), y = argument(random), z = argument(random);
    const Bounded want = f.bound(x.want, y.want, z.want);
    const Bounded of_exact = f.bound(without_error(x.want), without_error(y.want), without_error(z.want));
    for (const auto way : f.ways)
      record(found, way(x.got, y.got, z.got), want, left_out(left, want, of_exact, 0x1p-149), x.got, y.got, z.got);
  }
  return found;
}

/// Searches softmax terms of rows whose maximum rises often, with the values' own errors. Tile 0 means two passes.
Found search_softmax(int tile, Left left, int samples = 20'000) {
  const Arithmetic arithmetic{.online_tile = tile};
  const ArithmeticScope scope(arithmetic);
  Random random(3);
  Found found;
  for (int s = 0; s < samples; ++s) {
    const auto n = static_cast<std::size_t>(random.between(1, 40));
    const double spread = std::ldexp(1.0, static_cast<int>(random.between(-8, 7))),
                 slope = random.between(0, 2) * spread;
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i)
      x[i] = static_cast<float>(spread * random.gaussian() + slope * static_cast<double>(i));
    if (n > 1 && random.chance(0.1)) x[random.below(n)] = random.chance(0.5) ? -INFINITY : -FLT_MAX;
    if (random.chance(0.1)) x[random.below(n)] = FLT_MAX;
    const float largest = *std::max_element(x.begin(), x.end());
    const std::size_t which = random.below(n);
    const Bounded term = Bounded::input(x[which]), maximum = Bounded::input(largest);
    const Rescalings<Bounded> rescalings(static_cast<Index>(n),
                                         [&](Index i) { return Bounded::input(x[static_cast<std::size_t>(i)]); });
    const Bounded want = softmax_term(term, maximum, rescalings.of(term));
    const double error =
        left == Left::rounding ? std::max(0.0, exp(Bounded::input(x[which]) - maximum).error) : want.error;
    record(found, online_term(x, which, static_cast<std::size_t>(tile > 0 ? tile : 40)), want, error, x[which],
           largest);
  }
  return found;
}

/// Returns the rescalings of the terms `values` +- `error`, in order.
std::vector<double> rescalings_of(const std::vector<double>& values, double error, int tile,
                                  FunctionLibrary functions = FunctionLibrary::cuda) {
  const Arithmetic arithmetic{.functions = functions, .online_tile = tile};
  const ArithmeticScope scope(arithmetic);
  const auto term = [&](Index i) { return Bounded(values[static_cast<std::size_t>(i)], error, error, false); };
  const Rescalings<Bounded> rescalings(static_cast<Index>(values.size()), term);
  std::vector<double> times;
  for (std::size_t i = 0; i < values.size(); ++i) times.push_back(rescalings.of(term(static_cast<Index>(i))));
  return times;
}

void expect_sound(std::string_view name, const Found& found) {
  fmt::print("{:>16}: {} compared, {} that may overflow; largest error / bound {:.4f}\n", name, found.compared,
             found.other_class, found.worst);
  EXPECT_LE(found.worst, 1) << name << ": " << found.where;
  EXPECT_EQ(found.wrong_class, 0) << name << ": " << found.where;
  EXPECT_GT(found.worst, 0.3) << name << ": a bound that is never approached proves nothing";
  EXPECT_GT(found.compared, found.other_class) << name << ": most results are let pass";
}

TEST(Functions, NoCorrectResultExceedsItsBound) {
  for (const Unary& f : unary_functions()) expect_sound(f.name, search(f, Left::nothing));
  for (const Form& f : forms()) expect_sound(f.name, search(f, Left::nothing));
}

TEST(Functions, OnlineSoftmaxStaysWithinItsBound) {
  for (int tile : {0, 1, 4, 32})
    expect_sound(fmt::format("softmax, tile {}", tile), search_softmax(tile, Left::nothing));
}

TEST(Functions, FlushedSubnormalsAreBounded) {
  const Arithmetic arithmetic{.flushes_subnormals = true};
  const ArithmeticScope scope(arithmetic);
  const unsigned before = _mm_getcsr();
  for (const Form& f : forms()) {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
    Random random(derive(4, f.name));
    Found found;
    for (int n = 0; n < 100'000; ++n) {
      const float x = any_float(random), y = any_float(random), z = any_float(random);
      float got[3];
      for (std::size_t w = 0; w < f.ways.size(); ++w) got[w] = f.ways[w](x, y, z);
      _mm_setcsr(before);
      const Bounded want = f.bound(Bounded::input(x), Bounded::input(y), Bounded::input(z));
      for (std::size_t w = 0; w < f.ways.size(); ++w) record(found, got[w], want, want.error, x, y, z);
      _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
      _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
    }
    _mm_setcsr(before);
    expect_sound(fmt::format("{}, flushed", f.name), found);
  }
}

TEST(Functions, TheSearchSeesEachTermThatIsLeftOut) {
  for (const Unary& f : unary_functions()) {
    EXPECT_GT(search(f, Left::inherited).worst, 1) << f.name << ": the argument's error left out";
    EXPECT_GT(search(f, Left::rounding).worst, 1) << f.name << ": the function's own error left out";
  }
  for (const Unary& f : unary_functions()) {
    if (f.name != "exp" && !f.name.starts_with("stored")) continue;
    EXPECT_GT(search(f, Left::smallest).worst, 1) << f.name << ": the unit of subnormal results left out";
  }
  for (const Form& f : forms()) {
    EXPECT_GT(search(f, Left::inherited).worst, 1) << f.name << ": the arguments' errors left out";
    EXPECT_GT(search(f, Left::rounding).worst, 1) << f.name << ": the roundings left out";
    EXPECT_GT(search(f, Left::smallest).worst, 1) << f.name << ": the unit of subnormal results left out";
  }
  EXPECT_GT(search_softmax(1, Left::rounding).worst, 1) << "the roundings of rescaling left out";
}

/// Each form has an evaluation that another form's bound does not cover.
TEST(Functions, TheSearchSeesAWayThatIsNotNamed) {
  Form reciprocal = forms()[0];
  reciprocal.ways = forms()[1].ways;
  EXPECT_GT(search(reciprocal, Left::nothing).worst, 1) << "x (1 / y) within the bound of one division";
}

TEST(Functions, AConstantIsAsFarOffAsItsRounding) {
  for (const double constant : {0.0, 1.0, 0.1, -1.0 / 3, 1e30, 0x1.8p-149, 0x1.8p-150, -0x1.4p-148, 0x1.000001p-126}) {
    const double off = std::fabs(static_cast<double>(static_cast<float>(constant)) - constant);
    const Bounded x(constant);
    EXPECT_EQ(x.value, constant);
    EXPECT_GE(x.error, off) << constant;
    EXPECT_GE(x.statistical, off) << constant;
    EXPECT_EQ(x.error > 0, off > 0) << constant;
  }
}

TEST(Rescalings, AreOnePerTileAndPerTermAboveAtMost) {
  using Times = std::vector<double>;
  const std::vector<double> row{1, 5, 3, 5, -INFINITY, 4};
  EXPECT_EQ(rescalings_of(row, 0, 0), Times(6, 0));
  EXPECT_EQ(rescalings_of(row, 0, 1), (Times{4, 0, 3, 0, 5, 2}));
  EXPECT_EQ(rescalings_of(row, 0, 2), (Times{3, 0, 3, 0, 3, 2}));
  EXPECT_EQ(rescalings_of(row, 0, 6), (Times{1, 0, 1, 0, 1, 1}));
  // Count terms that errors may raise above this one, including terms of equal value, but never the term itself.
  EXPECT_EQ(rescalings_of(row, 0.1, 1), (Times{4, 1, 3, 1, 5, 2}));
  EXPECT_EQ(rescalings_of(row, 0.6, 1), (Times{4, 2, 3, 2, 5, 3}));
  EXPECT_EQ(rescalings_of({NAN, 1}, 0, 1), (Times{0, 0})) << "a row of NaN is NaN";
  // If exp(0) may differ from 1, every tile counts.
  EXPECT_EQ(rescalings_of(row, 0, 2, FunctionLibrary::vulkan), Times(6, 3));
}

TEST(Rescalings, ATermThatMayOverflowIsAboveAllOthers) {
  const Arithmetic arithmetic{.online_tile = 1};
  const ArithmeticScope scope(arithmetic);
  const Bounded row[] = {{3, 0, 0, false}, {1, 0, 0, true}, {2, 0, 0, false}};
  const Rescalings<Bounded> rescalings(3, [&](Index i) { return row[i]; });
  EXPECT_EQ(rescalings.of(row[0]), 1);
  EXPECT_EQ(rescalings.of(row[1]), 3);
  EXPECT_EQ(rescalings.of(row[2]), 2);
}

}  // namespace
}  // namespace assay::numbers::functions_test
