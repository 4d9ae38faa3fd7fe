// Records the interval of values that each certificate accepts in place of an element. With exact operands both sides
// of a check are exact for any drawn signs, so that the ends are those of the bound, to the last float.
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "by_reference.hpp"
#include "contract/certificates/attention.hpp"
#include "contract/certificates/attention_decode.hpp"
#include "contract/certificates/linear.hpp"
#include "contract/certificates/lora_linear.hpp"
#include "contract/certificates/nf4_absmax_quantize.hpp"
#include "contract/certificates/nf4_matmul.hpp"
#include "contract/certificates/nf4_quantize.hpp"
#include "contract/certificates/q4_k_quantize.hpp"
#include "contract/certificates/rmsnorm.hpp"
#include "contract/certificates/rope.hpp"
#include "contract/certificates/softmax.hpp"
#include "core/half.hpp"
#include "core/nf4.hpp"
#include "core/nf4_absmax.hpp"
#include "core/q4_k.hpp"
#include "recorded.hpp"

namespace assay::falsify::recorded {
namespace {

using contract::Certified;
using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;
using Integers = std::vector<std::int32_t>;
using Check = std::function<Certified()>;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
// Two adjacent floats: processors differ by that much on sums of rounded numbers.
constexpr double kNeighbours = 0x1p-23;
constexpr DType kStorages[] = {DType::f32, DType::f16, DType::bf16};

/// A tensor argument of a certificate.
struct Stored {
  DType dtype;
  Shape shape;
  Floats values;
  std::vector<std::uint16_t> halves{};

  StorageView view() {
    if (dtype == DType::f32) return View<const float>(values.data(), shape);
    halves.clear();
    for (const float x : values) halves.push_back(dtype == DType::f16 ? to_half(x).bits : to_bfloat16(x).bits);
    return {dtype, halves.data(), shape, row_major_strides(shape)};
  }
  /// Rounds the values to the storage format.
  void round() {
    for (float& x : values)
      x = dtype == DType::f16 ? widen(to_half(x)) : dtype == DType::bf16 ? widen(to_bfloat16(x)) : x;
  }
};

View<const float> matrix(const Floats& v, Index rows, Index columns) { return {v.data(), {rows, columns}}; }
View<const float> vector_of(const Floats& v) { return {v.data(), {static_cast<Index>(v.size())}}; }
View<const std::int32_t> vector_of(const Integers& v) { return {v.data(), {static_cast<Index>(v.size())}}; }

bool holds(const Check& check) {
  try {
    return check().holds;
  } catch (const std::logic_error&) {
    return false;
  }
}

/// Returns the position of a float in numerical order, infinities last.
std::int64_t place_of(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits < 0 ? -std::int64_t{bits & 0x7fffffff} : bits;
}
float float_at(std::int64_t place) {
  const float magnitude = std::bit_cast<float>(static_cast<std::int32_t>(place < 0 ? -place : place));
  return place < 0 ? -magnitude : magnitude;
}

/// Returns the last accepted float from x (accepted) towards `end`: the next float is refused, or does not exist.
float taken_towards(float end, float& x, const Check& check) {
  const float original = x;
  const std::int64_t last = place_of(end), direction = last < place_of(x) ? -1 : 1;
  const auto taken_at = [&](std::int64_t place) {
    x = float_at(place);
    return holds(check);
  };
  std::int64_t taken = place_of(x), step = 1, refused = taken;
  for (; taken != last; step *= 2) {
    refused = direction > 0 ? std::min(taken + step, last) : std::max(taken - step, last);
    if (!taken_at(refused)) break;
    taken = refused;
  }
  while (std::abs(refused - taken) > 1) {
    const std::int64_t middle = taken + (refused - taken) / 2;
    (taken_at(middle) ? taken : refused) = middle;
  }
  x = original;
  return float_at(taken);
}

/// Returns which of some numbers are accepted in place of x, and the ends of the interval accepted around x.
json taken_for(float& x, const Check& check) {
  const float original = x;
  std::string some;
  for (const float other : {0.0F, 1.0F, -1.0F, FLT_MAX, -FLT_MAX, kInf, -kInf, kNaN}) {
    x = other;
    some += holds(check) ? 'y' : '-';
  }
  x = original;
  if (!holds(check)) return {some, "refused"};
  if (std::isnan(x)) return json::array({some});
  const float least = taken_towards(-kInf, x, check), largest = taken_towards(kInf, x, check);
  return {some, number(least), number(largest)};
}

/// Returns taken_for of each element, or only of `ends` elements at both ends.
json taken_for_each(Floats& values, const Check& check, std::size_t ends = 6) {
  json all = json::array();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i < ends || values.size() - i <= ends) all.push_back(taken_for(values[i], check));
  return all;
}

/// Records f under each arithmetic: one line per `what`, with the result under the first arithmetic, and under others
/// that differ.
template <class F>
void expect_as_recorded(const std::string& part, const F& f, double apart_by = kSame) {
  const json now = apart([&] {
    json all = json::array();
    for (std::size_t i = 0; i < std::size(kArithmetics); ++i) {
      const ArithmeticScope scope(kArithmetics[i]);
      std::size_t line = 0;
      f([&](const std::string& what, json taken) {
        if (i == 0) all.push_back({what, std::move(taken)});
        else if (json& entry = all.at(line); entry.at(1) != taken) entry.push_back({i, std::move(taken)});
        ++line;
      });
    }
    return all;
  });
  expect_recorded(file_of("certificates"), part, now, apart_by);
}

/// Returns small integers, including zeros.
Floats integers(Index n, unsigned seed, float unit = 1) {
  Floats v;
  for (Index i = 0; i < n; ++i)
    v.push_back(static_cast<float>((static_cast<unsigned>(i) * 5 + seed * 3) % 7) * unit - 3 * unit);
  return v;
}

struct Matrices {
  Index m, k, n;
  Floats a, b, c{};

  void multiply() {
    c.clear();
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        double sum = 0;
        for (Index p = 0; p < k; ++p)
          sum += static_cast<double>(a[static_cast<std::size_t>(i * k + p)]) * b[static_cast<std::size_t>(p * n + j)];
        c.push_back(static_cast<float>(sum));
      }
  }
  Certified certified(const contract::ProductTerms& terms = {}) const {
    return contract::freivalds(matrix(a, m, k), matrix(b, k, n), matrix(c, m, n), terms);
  }
};

Matrices product(Index m, Index k, Index n, float a_unit = 1, float b_unit = 1) {
  Matrices p{m, k, n, integers(m * k, 1, a_unit), integers(k * n, 2, b_unit)};
  p.multiply();
  return p;
}

const contract::ProductTerms kTerms[] = {{}, {.operations = 3}, {.operations = 2, .absolute = 0x1p-100, .range = 8}};

TEST(RecordedCertificates, BoundsOfProducts) {
  expect_as_recorded("products", [](const auto& record) {
    Matrices zero_row = product(2, 3, 2);
    for (std::size_t p = 0; p < 3; ++p) zero_row.a[p] = 0;
    zero_row.multiply();
    struct {
      std::string what;
      Matrices matrices;
    } all[] = {{"small", product(2, 3, 3)},
               {"wide", product(1, 2, 64)},
               {"less wide", product(1, 2, 56)},
               {"long", product(1, 300, 2)},
               {"tiny", product(2, 3, 2, 0x1p-60F, 0x1p-70F)},
               {"tiny factors", product(1, 2, 2, 0x1p-140F, 0x1p20F)},
               {"other tiny factors", product(1, 2, 2, 0x1p20F, 0x1p-140F)},
               {"empty", product(1, 0, 2)},
               {"a row of zeros", zero_row}};
    for (auto& [what, p] : all)
      for (const contract::ProductTerms& terms : kTerms)
        record(fmt::format("{}, {} operations", what, terms.operations),
               taken_for_each(
                   p.c, [&] { return p.certified(terms); }, 2));
  });
}

/// Bounds of a row with A·(B·r) = 0, to more digits than a float has: the interval next to the largest accepted
/// element.
TEST(RecordedCertificates, BoundsOfProductsToTheLastDigit) {
  expect_as_recorded(
      "last_digits",
      [](const auto& record) {
        for (const Index n : {2, 64})
          for (const Index pairs : {1, 20})
            for (const contract::ProductTerms& terms : kTerms) {
              Matrices p{1,
                         2 * pairs,
                         n,
                         {},
                         Floats(static_cast<std::size_t>(2 * pairs * n), 3),
                         Floats(static_cast<std::size_t>(n), 0)};
              for (Index i = 0; i < pairs; ++i) p.a.push_back(1), p.a.push_back(-1);
              const Check check = [&] { return p.certified(terms); };
              p.c[0] = taken_towards(kInf, p.c[0], check);
              record(fmt::format("{} by {}, {} operations", 2 * pairs, n, terms.operations),
                     json::array({number(p.c[0]), number(taken_towards(-kInf, p.c[1], check)),
                                  number(taken_towards(kInf, p.c[1], check))}));
            }
      },
      1e-5);  // relative error of a difference at the last of seven digits
}

/// Intervals of non-finite elements, of possibly non-finite elements, and of all others.
TEST(RecordedCertificates, ClassesOfProducts) {
  expect_as_recorded("classes", [](const auto& record) {
    struct Planted {
      bool in_a;
      std::size_t at;
      float value;
    };
    const std::vector<Planted> all[] = {{{true, 0, kInf}},
                                        {{true, 5, -kInf}},
                                        {{true, 1, kNaN}},
                                        {{false, 0, kInf}},
                                        {{false, 4, -kInf}},
                                        {{false, 5, kNaN}},
                                        {{true, 0, kInf}, {false, 0, 0}},
                                        {{true, 0, kInf}, {false, 0, 1e-40F}},
                                        {{true, 0, kInf}, {false, 0, -1e-40F}},
                                        {{true, 0, kInf}, {false, 0, FLT_MIN}},
                                        {{true, 0, kInf}, {false, 3, 1e-40F}},
                                        {{false, 4, kInf}, {true, 2, 1e-40F}},
                                        {{false, 5, kInf}, {true, 5, 1e-40F}},
                                        {{false, 4, kInf}, {true, 2, FLT_MIN}},
                                        {{true, 0, kInf}, {false, 4, kInf}},
                                        {{true, 0, kInf}, {true, 1, kInf}, {false, 4, -1}},
                                        {{true, 0, 1e30F}, {false, 1, 1e10F}},
                                        {{true, 0, 1e30F}, {true, 4, kInf}, {false, 1, 1e10F}},
                                        {{true, 4, 70000}},
                                        {{false, 5, -70000}},
                                        {{true, 0, 1e38F}, {false, 0, 2}, {true, 1, -1e38F}, {false, 2, 2}}};
    for (const std::vector<Planted>& planted : all) {
      Matrices p = product(3, 2, 3);
      std::string what;
      for (const Planted& x : planted) {
        (x.in_a ? p.a : p.b)[x.at] = x.value;
        what += fmt::format("{}[{}] = {:g} ", x.in_a ? 'a' : 'b', x.at, x.value);
      }
      p.multiply();
      record(what, taken_for_each(
                       p.c, [&] { return p.certified(); }, 9));
    }
  });
}

/// Number of checked elements in a product without finite values.
TEST(RecordedCertificates, WorkForClasses) {
  const Index n = 100;
  const std::size_t size = static_cast<std::size_t>(n * n);
  Matrices p{n, n, n, Floats(size, kInf), Floats(size, kInf), Floats(size, kInf)};
  const json now = apart([&] {
    const auto looked_at = [&](std::size_t element) {
      p.c[element] = 1;
      const bool refused = !p.certified().holds;
      p.c[element] = kInf;
      return refused;
    };
    std::size_t last = 0, beyond = size;
    while (beyond - last > 1) {
      const std::size_t middle = (last + beyond) / 2;
      (looked_at(middle) ? last : beyond) = middle;
    }
    return json::array({looked_at(0), last});
  });
  expect_recorded(file_of("certificates"), "work", now);
}

/// Operands for which a non-finite or a far-off result is accepted.
TEST(RecordedCertificates, OverflowOfProducts) {
  expect_as_recorded("overflow", [](const auto& record) {
    for (const float result : {kInf, kNaN, FLT_MAX, 0.0F, 65504.0F})
      for (const float large : {0x1p127F, 0x1.8p15F})
        for (const contract::ProductTerms& terms : kTerms) {
          Matrices p{1, 2, 1, {large, 1}, {4, -4}, {result}};
          const Check check = [&] { return p.certified(terms); };
          record(fmt::format("{} for {:g}, {} operations, a", result, large, terms.operations),
                 taken_for_each(p.a, check));
          record(fmt::format("{} for {:g}, {} operations, b", result, large, terms.operations),
                 taken_for_each(p.b, check));
        }
  });
}

TEST(RecordedCertificates, ExactProducts) {
  expect_as_recorded("exact", [](const auto& record) {
    const float largest = float_at(place_of(0x1p31F) - 1);
    Matrices all[] = {product(3, 2, 3),
                      {1, 1, 1, {largest}, {1}, {largest}},
                      {1, 1, 1, {-1}, {largest}, {-largest}},
                      {1, 1, 1, {0x1p16F}, {0x1p15F}, {0x1p31F}},
                      {1, 2, 1, {3, 0x1p16F}, {5, 0x1p14F}, {0x1p30F}},
                      product(2, 0, 2)};
    for (std::size_t i = 0; i < std::size(all); ++i) {
      Matrices& p = all[i];
      const Check check = [&] {
        return contract::freivalds_exact(matrix(p.a, p.m, p.k), matrix(p.b, p.k, p.n), matrix(p.c, p.m, p.n));
      };
      record(fmt::format("c of {}", i), taken_for_each(p.c, check, 9));
      record(fmt::format("a of {}", i), taken_for_each(p.a, check));
      record(fmt::format("b of {}", i), taken_for_each(p.b, check));
    }
  });
}

/// Views with either axis dense; each element of each matrix is off once.
TEST(RecordedCertificates, ExactProductsOfAnyLayout) {
  const Index m = 3, k = 2, n = 4;
  Matrices p = product(m, k, n);
  const auto transposed = [](const Floats& v, Index rows, Index columns) {
    Floats t(v.size());
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j)
        t[static_cast<std::size_t>(j * rows + i)] = v[static_cast<std::size_t>(i * columns + j)];
    return t;
  };
  const json wrong = apart([&] {
    json all = json::array();
    for (unsigned layouts = 0; layouts < 8; ++layouts) {
      const bool ta = (layouts & 1) != 0, tb = (layouts & 2) != 0, tc = (layouts & 4) != 0;
      Floats a = ta ? transposed(p.a, m, k) : p.a, b = tb ? transposed(p.b, k, n) : p.b,
             c = tc ? transposed(p.c, m, n) : p.c;
      const Check check = [&] {
        return contract::freivalds_exact(ta ? matrix(a, k, m).transposed() : matrix(a, m, k),
                                         tb ? matrix(b, n, k).transposed() : matrix(b, k, n),
                                         tc ? matrix(c, n, m).transposed() : matrix(c, m, n));
      };
      if (!holds(check)) all.push_back({layouts, "the right product is refused"});
      for (Floats* values : {&a, &b, &c})
        for (float& x : *values)
          for (const float off : {1.0F, 0.5F}) {  // 0.5 gives a non-integer
            const float right = std::exchange(x, x + off);
            if (holds(check))
              all.push_back({layouts, values == &a ? "a" : values == &b ? "b" : "c", &x - values->data(), off});
            x = right;
          }
    }
    return all;
  });
  EXPECT_EQ(wrong, json::array());
}

/// Matrices large enough that threads share the rows: each thread checks its rows, with bounds of all norms.
TEST(RecordedCertificates, SharesOfThreads) {
  const Index m = 901, k = 1101, n = 801;
  Matrices p{
      m, k, n, Floats(static_cast<std::size_t>(m * k)), integers(k * n, 1), Floats(static_cast<std::size_t>(m * n))};
  for (Index i = 0; i < m; ++i) {
    const float factor = static_cast<float>(1 + i % 3);
    const Index of = k - 1 - i;
    p.a[static_cast<std::size_t>(i * k + of)] = factor;
    for (Index j = 0; j < n; ++j)
      p.c[static_cast<std::size_t>(i * n + j)] = factor * p.b[static_cast<std::size_t>(of * n + j)];
  }
  const json now = apart([&] {
    const Check check = [&] { return p.certified(); };
    json all = json::array({holds(check)});
    for (const Index row : {Index{0}, m / 2 - 1, m / 2, m / 2 + 1, m - 1}) {
      float& x = p.c[static_cast<std::size_t>(row * n + row % n)];
      const float original = x;
      x += 16;
      all.push_back({row, holds(check)});
      x = original;
    }
    for (const Index row : {Index{0}, m / 2, m - 1})
      all.push_back({row, number(taken_towards(kInf, p.c[static_cast<std::size_t>(row * n)], check))});
    return all;
  });
  expect_recorded(file_of("certificates"), "threads", now);
}

TEST(RecordedCertificates, Layers) {
  expect_as_recorded("layers", [](const auto& record) {
    const float infinite[] = {kInf, -kInf, kNaN, 1e38F};
    for (int i = -1; i < 4; ++i)
      for (const Index biases : {0, 1}) {
        const Floats x = integers(6, 1), weight = integers(6, 2);
        Floats bias = integers(2 * biases, 3), y;
        if (i >= 0 && biases > 0) bias.back() = infinite[i];
        for (std::size_t s = 0; s < 2; ++s)
          for (std::size_t o = 0; o < 2; ++o) {
            float sum = biases > 0 ? bias[o] : 0;
            for (std::size_t p = 0; p < 3; ++p) sum += x[s * 3 + p] * weight[o * 3 + p];
            y.push_back(sum);
          }
        record(fmt::format("{} biases, {}", biases, i), taken_for_each(y, [&] {
                 return contract::freivalds_linear(matrix(x, 2, 3), matrix(weight, 2, 3), matrix(bias, biases, 2),
                                                   matrix(y, 2, 2));
               }));
      }
  });
}

/// One adapter of rank r, with s rows and `out` columns.
struct Adapter {
  Index s, in, out, r, biases;
  double alpha;
  Floats x, weight, bias, t, b, y{};

  Adapter(Index s_, Index in_, Index out_, Index r_, Index biases_, double alpha_)
      : s(s_), in(in_), out(out_), r(r_), biases(biases_), alpha(alpha_), x(integers(s * in, 1)),
        weight(integers(out * in, 2)), bias(integers(biases * out, 3)), t(integers(s * r, 4)), b(integers(out * r, 5)) {
    const auto row = [](const Floats& v, Index i, Index p, Index width) {
      return static_cast<double>(v[static_cast<std::size_t>(i * width + p)]);
    };
    for (Index i = 0; i < s; ++i)
      for (Index o = 0; o < out; ++o) {
        double sum = biases > 0 ? bias[static_cast<std::size_t>(o)] : 0, adapted = 0;
        for (Index p = 0; p < in; ++p) sum += row(x, i, p, in) * row(weight, o, p, in);
        for (Index q = 0; q < r; ++q) adapted += row(t, i, q, r) * row(b, o, q, r);
        y.push_back(static_cast<float>(sum + alpha / static_cast<double>(r) * adapted));
      }
  }
  Certified certified() const {
    return contract::freivalds_lora(matrix(x, s, in), matrix(weight, out, in), matrix(bias, biases, out),
                                    matrix(t, s, r), matrix(b, out, r), alpha, matrix(y, s, out));
  }
};

TEST(RecordedCertificates, Adapters) {
  expect_as_recorded("adapters", [](const auto& record) {
    for (const double alpha : {0.5, 4.0, 4096.0})
      for (const Index biases : {0, 1}) {
        Adapter l(2, 3, 2, 2, biases, alpha);
        record(fmt::format("alpha {}, {} biases", alpha, biases), taken_for_each(l.y, [&] { return l.certified(); }));
      }
    // The interval due to underflow only.
    for (const double alpha : {0.5, 4.0, 4096.0}) {
      Adapter l(1, 3, 2, 2, 0, alpha);
      l.weight.assign(6, 0), l.b.assign(4, 0), l.y = {0, 0};
      record(fmt::format("zeros, alpha {}", alpha), taken_for_each(l.y, [&] { return l.certified(); }));
    }
    // The interval for a scale of 1, which rounds nothing, and for a large t with an adapter lost to underflow.
    Adapter as_it_is(1, 3, 2, 2, 0, 2);
    as_it_is.weight.assign(6, 0), as_it_is.b.assign(4, 0), as_it_is.y = {0, 0};
    record("zeros, a scale of 1", taken_for_each(as_it_is.y, [&] { return as_it_is.certified(); }));
    as_it_is.t = {0x1p100F, 0x1p90F};
    record("zeros, a large t", taken_for_each(as_it_is.y, [&] { return as_it_is.certified(); }));
    // Results that only the scale makes infinite.
    for (const bool in_t : {true, false})
      for (const float y : {0.0F, kNaN}) {
        Adapter l(1, 1, 1, 2, 0, 64);
        l.x = l.weight = {0}, l.t = l.b = {0, 0}, l.y = {y};
        Floats& large = in_t ? l.t : l.b;
        large = {1e38F, -1e38F};
        record(fmt::format("{} of {}", y, in_t ? "t" : "b"), taken_for_each(large, [&] { return l.certified(); }));
      }
    Adapter l(2, 1, 2, 2, 0, 64);
    l.t = {1, 2, 1, 1e38F}, l.b = {0, 0, 0, 0}, l.y = {0, 0, 0, 0}, l.x = {0, 0};
    record("a row left out", taken_for_each(l.y, [&] { return l.certified(); }));
    l.t = {0, 0, 0, 0}, l.b = {1, 2, 1, -1e38F};
    record("a column left out", taken_for_each(l.y, [&] { return l.certified(); }));
  });
}

/// Codes [n, a multiple of 32 bytes] of weights of -1, 0 and 1 times their scale, over two blocks.
struct Quantized {
  Index n, k;
  Bytes codes{};
  Floats absmax;

  Quantized(Index n_, Index k_, Floats scales) : n(n_), k(k_), absmax(std::move(scales)) {
    codes.assign(static_cast<std::size_t>(n * nf4_blocks(k) * kNf4Bytes), kNf4ZeroPair);
    for (Index j = 0; j < n; ++j)
      for (Index p = 0; p < k; ++p) {
        constexpr unsigned kCodes[] = {15, 0, 7, 15, 15};
        std::uint8_t& byte = codes[static_cast<std::size_t>(j * nf4_blocks(k) * kNf4Bytes + p / 2)];
        const unsigned code = kCodes[(j * 2 + p) % 5];
        byte = static_cast<std::uint8_t>(p % 2 == 0 ? (byte & 15U) | code << 4U : (byte & 0xf0U) | code);
      }
  }
  double weight(Index j, Index p) const {
    const double scale = absmax[static_cast<std::size_t>(j * nf4_blocks(k) + p / kNf4Block)];
    return static_cast<double>(kNf4[nf4_code(codes.data() + j * nf4_blocks(k) * kNf4Bytes, p)]) * scale;
  }
  View<const std::uint8_t> code_view() const { return {codes.data(), {n, nf4_blocks(k) * kNf4Bytes}}; }
  View<const float> scales() const { return matrix(absmax, n, nf4_blocks(k)); }
};

TEST(RecordedCertificates, Nf4Products) {
  expect_as_recorded("nf4_products", [](const auto& record) {
    const Floats all_scales[] = {
        {1, 2, 4, 1}, {0.5F, 8, -2, 1}, {1, kInf, 2, 1}, {1, 2, 1, kNaN}, {0x1p-130F, 1, 1, -1}};
    for (std::size_t i = 0; i < std::size(all_scales); ++i) {
      const Quantized w(2, 66, all_scales[i]);
      const Floats x = integers(2 * 66, 1), dy = integers(2 * 2, 2);
      Floats y, dx;
      for (Index s = 0; s < 2; ++s)
        for (Index j = 0; j < 2; ++j) {
          double sum = 0;
          for (Index p = 0; p < 66; ++p)
            sum += static_cast<double>(x[static_cast<std::size_t>(s * 66 + p)]) * w.weight(j, p);
          y.push_back(static_cast<float>(sum));
        }
      for (Index s = 0; s < 2; ++s)
        for (Index p = 0; p < 66; ++p) {
          double sum = 0;
          for (Index j = 0; j < 2; ++j)
            sum += static_cast<double>(dy[static_cast<std::size_t>(s * 2 + j)]) * w.weight(j, p);
          dx.push_back(static_cast<float>(sum));
        }
      record(fmt::format("y, scales {}", i), taken_for_each(y, [&] {
               return contract::freivalds_nf4_nt(matrix(x, 2, 66), w.code_view(), w.scales(), matrix(y, 2, 2));
             }));
      record(
          fmt::format("dx, scales {}", i),
          taken_for_each(
              dx,
              [&] { return contract::freivalds_nf4(matrix(dy, 2, 2), w.code_view(), w.scales(), matrix(dx, 2, 66)); },
              2));
    }
  });
}

/// The size of factors from which a result is left out.
TEST(RecordedCertificates, Nf4ProductsLeftOut) {
  expect_as_recorded("nf4_left_out", [](const auto& record) {
    for (const float result : {kNaN, kInf, 0.0F, 1.0F}) {
      Floats x{0x1.8p126F, -0x1.8p126F, 0x1p120F}, y{result};
      Quantized w(1, 3, {0x1p-20F});
      const Check nt = [&] {
        return contract::freivalds_nf4_nt(matrix(x, 1, 3), w.code_view(), w.scales(), matrix(y, 1, 1));
      };
      record(fmt::format("y = {}, x", result), taken_for_each(x, nt));
      record(fmt::format("y = {}, scale", result), taken_for_each(w.absmax, nt));
      for (const std::size_t large : {0U, 1U}) {
        Floats dy{1, 1}, dx{result, result, result};
        Quantized v(2, 3, {1, 1});
        dy[large] = 0x1p100F, v.absmax[large] = 0x1p30F;
        v.codes.assign(v.codes.size(), kNf4ZeroPair);
        const Check nn = [&] {
          return contract::freivalds_nf4(matrix(dy, 1, 2), v.code_view(), v.scales(), matrix(dx, 1, 3));
        };
        record(fmt::format("dx = {}, dy, {}", result, large), taken_for_each(dy, nn));
        record(fmt::format("dx = {}, scale, {}", result, large), taken_for_each(v.absmax, nn));
      }
      // The rows and columns left out of several.
      for (const std::size_t large : {0U, 1U, 2U}) {
        Floats rows(9, 1), out(9, result);
        rows[large * 3 + large] = 0x1.8p127F;
        Quantized all(3, 3, {1, 1, 1});
        all.codes.assign(all.codes.size(), kNf4ZeroPair);
        const Check nt_of_all = [&] {
          return contract::freivalds_nf4_nt(matrix(rows, 3, 3), all.code_view(), all.scales(), matrix(out, 3, 3));
        };
        record(fmt::format("{} beside a row {} left out", result, large), taken_for_each(out, nt_of_all, 9));
        rows[large * 3 + large] = 1, all.absmax[large] = kInf;
        record(fmt::format("{} beside a column {} left out", result, large), taken_for_each(out, nt_of_all, 9));
      }
    }
  });
}

TEST(RecordedCertificates, Softmax) {
  expect_as_recorded(
      "softmax",
      [](const auto& record) {
        const Floats rows[] = {{0},       {0, 0, 0, 0}, {1, -2, 3},   {1, -kInf, 1},     {-kInf, -kInf}, {kInf, 1},
                               {kNaN, 1}, {1, kNaN},    {-300, 2, 1}, {-kInf, -80, -81}, integers(40, 1)};
        for (std::size_t i = 0; i < std::size(rows); ++i) {
          // Append a row of zeros, whose y is exact.
          Floats x = rows[i], y;
          const std::size_t n = x.size();
          const float largest = *std::ranges::max_element(x);
          double sum = 0;
          for (const float v : x) sum += std::exp(static_cast<double>(v) - largest);
          for (const float v : x)
            y.push_back(largest == -kInf ? 0 : static_cast<float>(std::exp(static_cast<double>(v) - largest) / sum));
          x.insert(x.end(), n, 0.0F), y.insert(y.end(), n, 1.0F / static_cast<float>(n));
          const Check check = [&] {
            return contract::distributions(matrix(x, 2, static_cast<Index>(n)), matrix(y, 2, static_cast<Index>(n)));
          };
          record(fmt::format("y of {}", i), taken_for_each(y, check, 4));
          record(fmt::format("x of {}", i), taken_for_each(x, check, 2));
        }
      },
      kNeighbours);
}

TEST(RecordedCertificates, Rmsnorm) {
  expect_as_recorded(
      "rmsnorm",
      [](const auto& record) {
        const Floats rows[] = {
            {1, -2, 3, -4}, {0, 0, 0, 0}, {1e-3F, 2e-3F, 0, 1e-3F}, {3e19F, 1, 1, 1}, {1e-22F, 1e-22F, 1e-23F, 0}};
        const Floats weights[] = {{1, 2, -0.5F, 1}, {0, 1, 0x1p-70F, 1}, {1, kInf, 1, 0x1p-60F}, {1e-40F, 1, 1, 2}};
        for (const DType dtype : kStorages)
          for (std::size_t i = 0; i < std::size(rows); ++i)
            for (std::size_t w = 0; w < std::size(weights); ++w)
              for (const double eps : {0.0, 0x1p-10}) {
                if ((i + w + (eps > 0)) % 2 != 0 && dtype != DType::f32) continue;
                Floats weight = weights[w], rrms;
                Stored x{dtype, {2, 4}, {1, 1, 1, 1}}, y{dtype, {2, 4}, {}};
                x.values.insert(x.values.end(), rows[i].begin(), rows[i].end());
                x.round();
                for (std::size_t row = 0; row < 2; ++row) {
                  double squares = 0;
                  for (std::size_t j = 0; j < 4; ++j)
                    squares += static_cast<double>(x.values[row * 4 + j]) * x.values[row * 4 + j];
                  rrms.push_back(static_cast<float>(1 / std::sqrt(squares / 4 + eps)));
                  for (std::size_t j = 0; j < 4; ++j)
                    y.values.push_back(x.values[row * 4 + j] * rrms.back() * weight[j]);
                }
                const Check check = [&] {
                  return contract::unit_mean_square(x.view(), vector_of(weight), y.view(), vector_of(rrms), eps);
                };
                const std::string what = fmt::format("{} {}, weights {}, eps {}", name(dtype), i, w, eps);
                record("y, " + what, taken_for_each(y.values, check, 2));
                record("rrms, " + what, taken_for_each(rrms, check));
                if (eps > 0) continue;
                record("x, " + what, taken_for_each(x.values, check, 1));
                record("weight, " + what, taken_for_each(weight, check, 1));
                rrms[1] = i % 2 == 0 ? kInf : 0;
                record("x of an infinite rrms, " + what, taken_for_each(x.values, check, i == 3 ? 4 : 1));
              }
      },
      kNeighbours);
}

TEST(RecordedCertificates, Rope) {
  expect_as_recorded(
      "rope",
      [](const auto& record) {
        Arithmetic arithmetic = current_arithmetic();
        // Not all other libraries guarantee a sine.
        if (arithmetic.functions != FunctionLibrary::c_library) arithmetic.functions = FunctionLibrary::octant;
        const ArithmeticScope scope(arithmetic);
        for (const DType dtype : kStorages)
          for (const bool interleaved : {false, true})
            for (const float size : {1.0F, 0x1p-20F, 0x1p-130F, 0x1p13F, 0x1p124F}) {
              Stored x{dtype, {2, 2, 4}, integers(16, 1, size)}, y = x;
              x.round();
              for (std::size_t at = 0; at < 16; at += 4)
                for (std::size_t i = 0; i < 2; ++i) {  // rotated by a quarter turn
                  const std::size_t first = at + (interleaved ? 2 * i : i),
                                    second = at + (interleaved ? 2 * i + 1 : i + 2);
                  y.values[first] = -x.values[second], y.values[second] = x.values[first];
                }
              const Check check = [&] { return contract::pair_norms(x.view(), y.view(), interleaved ? 1 : 0); };
              const std::string what = fmt::format("{}{}, {:g}", name(dtype), interleaved ? " interleaved" : "", size);
              record("y, " + what, taken_for_each(y.values, check, 4));
              record("x, " + what, taken_for_each(x.values, check, 1));
            }
      },
      kNeighbours);
}

TEST(RecordedCertificates, Attention) {
  expect_as_recorded("attention", [](const auto& record) {
    for (const DType dtype : kStorages)
      for (const float special : {1.0F, kInf, kNaN, 3e38F, 0x1p-140F})
        for (const double causal : {0.0, 1.0}) {
          if (dtype != DType::f32 && special != 1) continue;
          const Index batch = 2, s = 2, heads = 4, groups = 2, d = 2, t = 3;
          Stored v{dtype, {batch, t, groups, d}, integers(batch * t * groups * d, 2)},
              y{dtype, {batch, s, heads, d}, {}};
          v.values[2] = special;
          const Integers lengths{3, 1}, starts{1, -1};
          Floats logsumexp(static_cast<std::size_t>(batch * heads * s), 0.5F);
          for (Index b = 0; b < batch; ++b)
            for (Index i = 0; i < s; ++i) {
              const Index length = lengths[static_cast<std::size_t>(b)], start = starts[static_cast<std::size_t>(b)];
              const Index keys = causal != 0 ? std::clamp<Index>(start + i + 1, 0, length) : length;
              for (Index h = 0; h < heads; ++h) {
                if (keys == 0) logsumexp[static_cast<std::size_t>((b * heads + h) * s + i)] = -kInf;
                for (Index c = 0; c < d; ++c)
                  y.values.push_back(
                      keys == 0 ? 0
                                : v.values[static_cast<std::size_t>(((b * t + keys - 1) * groups + h / 2) * d + c)]);
              }
            }
          const Check check = [&] {
            return contract::within_hull(v.view(), vector_of(lengths), vector_of(starts), y.view(),
                                         {logsumexp.data(), {batch, heads, s}}, causal);
          };
          const std::string what = fmt::format("{} {:g}{}", name(dtype), special, causal != 0 ? " causal" : "");
          record("y, " + what, taken_for_each(y.values, check, 16));
          if (special != 1) continue;
          record("logsumexp, " + what, taken_for_each(logsumexp, check, 8));
          record("v, " + what, taken_for_each(v.values, check, 3));
          logsumexp[2] = kNaN, logsumexp[13] = kInf;  // second head of the first sequence, third head of the second
          record("y of an unknown logsumexp, " + what, taken_for_each(y.values, check, 16));
        }
  });
}

/// Intervals by number and size of the averaged values.
TEST(RecordedCertificates, Means) {
  expect_as_recorded("means", [](const auto& record) {
    for (const DType dtype : kStorages)
      for (const Index t : {1, 2, 17, 130, 3000})  // half floats have no digits left for 3000
        for (const float size : {0.0F, 1.0F, -1e-4F, 1e-39F, 1e35F, 1e37F}) {
          if (t == 3000 && (dtype != DType::f32 || size != 1)) continue;
          Stored v{dtype, {1, t, 1, 1}, Floats(static_cast<std::size_t>(t), size)}, y{dtype, {1, 1, 1, 1}, {size}};
          v.round();
          const Integers lengths{static_cast<std::int32_t>(t)}, starts{0};
          const Floats logsumexp{0};
          const Check check = [&] {
            return contract::within_hull(v.view(), vector_of(lengths), vector_of(starts), y.view(),
                                         {logsumexp.data(), {1, 1, 1}}, 0);
          };
          record(fmt::format("y, {} of {} {:g}", name(dtype), t, size), taken_for_each(y.values, check));
          if (t == 17)
            record(fmt::format("v, {} of {} {:g}", name(dtype), t, size), taken_for_each(v.values, check, 1));
          Stored short_y{DType::f16, {1, 1, 1, 1}, {size}};
          if (dtype == DType::f32)
            record(fmt::format("f16 of {} {:g}", t, size), taken_for_each(short_y.values, [&] {
                     return contract::within_hull(v.view(), vector_of(lengths), vector_of(starts), short_y.view(),
                                                  {logsumexp.data(), {1, 1, 1}}, 0);
                   }));
        }
  });
}

TEST(RecordedCertificates, Decoding) {
  expect_as_recorded("decoding", [](const auto& record) {
    const Index batch = 2, capacity = 3, groups = 2, heads = 4, d = 3;
    const Integers lengths{1, 2};
    for (const DType dtype : kStorages) {
      Stored row{dtype, {batch, groups, d}, integers(batch * groups * d, 1)};
      Stored cache{dtype, {batch, capacity, groups, d}, integers(batch * capacity * groups * d, 4)};
      for (Index b = 0; b < batch; ++b) {
        const Index place = b * capacity + lengths[static_cast<std::size_t>(b)];
        for (Index i = 0; i < groups * d; ++i)
          cache.values[static_cast<std::size_t>(place * groups * d + i)] =
              row.values[static_cast<std::size_t>(b * groups * d + i)];
      }
      const Check check = [&] { return contract::appended(row.view(), vector_of(lengths), cache.view()); };
      record(fmt::format("row, {}", name(dtype)), taken_for_each(row.values, check, 6));
      record(fmt::format("cache, {}", name(dtype)), taken_for_each(cache.values, check, 18));

      Stored q{dtype, {batch, heads, d}, integers(batch * heads * d, 1)}, k = cache, v = cache,
                                                                          y{dtype, {batch, heads, d}, {}};
      for (Index b = 0; b < batch; ++b)
        for (Index h = 0; h < heads; ++h)
          for (Index c = 0; c < d; ++c)
            y.values.push_back(v.values[static_cast<std::size_t>((b * capacity * groups + h / 2) * d + c)]);
      const Check within = [&] {
        return contract::within_cache(q.view(), k.view(), v.view(), vector_of(lengths), 0.5, y.view());
      };
      record(fmt::format("y, {}", name(dtype)), taken_for_each(y.values, within, 12));
      record(fmt::format("v, {}", name(dtype)), taken_for_each(v.values, within, 18));
    }
  });
}

/// The size of queries, keys and scale from which overflowing scores make any result acceptable.
TEST(RecordedCertificates, ScoresThatOverflow) {
  expect_as_recorded("scores", [](const auto& record) {
    const Index batch = 2, capacity = 3, groups = 2, heads = 4, d = 2;
    const Integers lengths{1, 2};
    for (const float result : {kNaN, 0.0F, 3.0F})
      for (const double scale : {0.25, 4.0})
        for (const auto& [query, key] :
             {std::pair{0x1p100F, 0x1p100F}, std::pair{0.5F, 0x1.8p126F}, std::pair{0x1.8p126F, 0.5F}}) {
          Stored q{DType::f32, {batch, heads, d}, Floats(16, query)},
              k{DType::f32, {batch, capacity, groups, d}, Floats(24, key)};
          Stored v{DType::f32, {batch, capacity, groups, d}, Floats(24, 3)},
              y{DType::f32, {batch, heads, d}, Floats(16, 3)};
          const Check check = [&] {
            return contract::within_cache(q.view(), k.view(), v.view(), vector_of(lengths), scale, y.view());
          };
          const std::string what = fmt::format("{}, scale {}, query {:g}, key {:g}", result, scale, query, key);
          y.values.back() = result;  // last head of the second sequence: its query and a key of its group must be large
          record("y, " + what, taken_for_each(y.values, check, 2));
          for (std::size_t other = 12; other < 24; ++other) k.values[other] = other == 19 ? k.values[other] : 0.5F;
          for (std::size_t other = 0; other < 15; ++other) q.values[other] = 0.5F;
          record("q, " + what, taken_for_each(q.values, check, 2));
          record("k, " + what, taken_for_each(k.values, check, 12));
        }
  });
}

TEST(RecordedCertificates, Nf4Codes) {
  expect_as_recorded("nf4_codes", [](const auto& record) {
    if (!(current_arithmetic() == Arithmetic{})) return;  // independent of the arithmetic
    for (const float scale : {1.0F, 3.0F, 0.0F, -1.0F, kInf, kNaN, 0x1p-110F}) {
      Floats x, absmax{scale, 2 * scale, scale, scale};
      Bytes codes(4 * 32, kNf4ZeroPair);  // two rows of 64 + 6 elements
      for (std::size_t row = 0; row < 2; ++row)
        for (std::size_t p = 0; p < 70; ++p) {
          const std::size_t code = (p + 3 * row) % 16;
          x.push_back(kNf4[code] * absmax[row * 2 + p / 64]);
          std::uint8_t& byte = codes[row * 64 + p / 2];
          byte = static_cast<std::uint8_t>(p % 2 == 0 ? (byte & 15U) | code << 4U : (byte & 0xf0U) | code);
        }
      const Check check = [&] {
        return contract::nf4_nearest(matrix(x, 2, 70), {codes.data(), {2, 64}}, matrix(absmax, 2, 2));
      };
      record(fmt::format("x of {}", scale), taken_for_each(x, check, 70));
      record(fmt::format("scales of {}", scale), taken_for_each(absmax, check));
    }
  });
}

TEST(RecordedCertificates, AbsmaxCodes) {
  expect_as_recorded("absmax_codes", [](const auto& record) {
    if (!(current_arithmetic() == Arithmetic{})) return;
    const auto all_of = [&](const std::string& what, Floats absmax, Index width, Bytes codes, Floats scales,
                            Floats offset, std::size_t ends) {
      const Index rows = width == 0 ? 0 : static_cast<Index>(absmax.size()) / width;
      const Check check = [&] {
        return contract::nf4_absmax_nearest(matrix(absmax, rows, width),
                                            {codes.data(), {static_cast<Index>(codes.size())}}, vector_of(scales),
                                            vector_of(offset));
      };
      record("absmax, " + what, taken_for_each(absmax, check, ends));
      record("scales, " + what, taken_for_each(scales, check));
      record("offset, " + what, taken_for_each(offset, check));
    };
    Bytes codes(256, kAbsmaxZero);
    all_of("one", {1}, 1, codes, {0}, {1}, 1);
    all_of("none", {}, 0, codes, {0}, {0}, 1);
    all_of("largest", {FLT_MAX}, 1, codes, {0}, {FLT_MAX}, 1);
    all_of("half of the largest twice", {FLT_MAX / 2, FLT_MAX / 2}, 1, codes, {0}, {FLT_MAX / 2}, 1);
    for (const float bad : {kNaN, kInf, -1.0F}) all_of(fmt::format("{}", bad), {1, bad}, 2, codes, {kNaN}, {kNaN}, 2);
    // Groups of all codes around a mean, each with both ends of the codebook.
    for (const Index groups : {1, 3}) {
      Floats absmax, scales(static_cast<std::size_t>(groups), 0.5F);
      Bytes all(static_cast<std::size_t>(groups) * 256);
      for (Index i = 0; i < groups * 256; ++i) {
        const std::size_t code = static_cast<std::size_t>(i % 128) + 127;
        all[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i % 256 < 128 ? code : 254 - code);
        absmax.push_back(0.5F + kAbsmaxCode[all[static_cast<std::size_t>(i)]] * 0.5F);
      }
      for (std::size_t first = 0; first < all.size(); first += 256)
        absmax[first] = 1, all[first] = 255, absmax[first + 1] = 0, all[first + 1] = 0;
      double sum = 0;
      for (const float x : absmax) sum += x;
      all_of(fmt::format("{} groups", groups), absmax, 8, all, scales,
             {static_cast<float>(sum / static_cast<double>(absmax.size()))}, 12);
    }
  });
}

TEST(RecordedCertificates, Q4KBlocks) {
  expect_as_recorded("q4_k", [](const auto& record) {
    if (!(current_arithmetic() == Arithmetic{})) return;
    // Two rows of a block and a partial block.
    const Index k = q4_k::kValues + 40, bytes = 2 * q4_k::kBytes;
    Bytes blocks(static_cast<std::size_t>(2 * bytes));
    Floats x;
    const auto put = [&](std::size_t at, Half h) {
      blocks[at] = static_cast<std::uint8_t>(h.bits & 0xffU), blocks[at + 1] = static_cast<std::uint8_t>(h.bits >> 8U);
    };
    for (std::size_t block = 0; block < 4; ++block) {
      const std::size_t at = block * static_cast<std::size_t>(q4_k::kBytes);
      put(at, to_half(0.25F * static_cast<float>(block + 1))), put(at + 2, to_half(block == 3 ? 0 : 0.5F));
      for (Index b = 0; b < q4_k::kSubBlocks; ++b)
        q4_k::pack(&blocks[at + 4], b, {static_cast<unsigned>(b * 8 + 7), static_cast<unsigned>(60 - 7 * b)});
      for (std::size_t i = 16; i < 144; ++i) blocks[at + i] = static_cast<std::uint8_t>(i * 37);
    }
    for (Index row = 0; row < 2; ++row)
      for (Index p = 0; p < k; ++p) {
        const std::size_t block = static_cast<std::size_t>(row * bytes + p / q4_k::kValues * q4_k::kBytes);
        x.push_back(q4_k::value_at(&blocks[block], p % q4_k::kValues));
      }
    const Check check = [&] { return contract::q4_k_round_trip(matrix(x, 2, k), {blocks.data(), {2, bytes}}); };
    json all = json::array();
    for (std::size_t i = 0; i < x.size(); i += i % 32 == 0 ? 1 : 15) all.push_back(taken_for(x[i], check));
    all.push_back(taken_for(x[static_cast<std::size_t>(k) - 1], check)), all.push_back(taken_for(x.back(), check));
    record("x", all);
    // A block of zeros: a subnormal x counts as zero.
    const Bytes zeros(static_cast<std::size_t>(q4_k::kBytes));
    Floats none{0, 0, 0};
    record("a block of zeros", taken_for_each(none, [&] {
             return contract::q4_k_round_trip(matrix(none, 1, 3), {zeros.data(), {1, q4_k::kBytes}});
           }));
    // An undefined block: x must be this large.
    Bytes undefined(static_cast<std::size_t>(q4_k::kBytes));
    undefined[0] = q4_k::kUndefined.bits & 0xffU, undefined[1] = q4_k::kUndefined.bits >> 8U;
    for (const float large : {-1e8F, 1e8F, -4e6F, kInf, kNaN, -63.0F * 65504, 945.0F * 65504})
      for (const float other : {0.0F, 1.0F, -1e5F}) {
        Floats y{other, large};
        record(fmt::format("{} and {}, undefined", large, other), taken_for_each(y, [&] {
                 return contract::q4_k_round_trip(matrix(y, 1, 2), {undefined.data(), {1, q4_k::kBytes}});
               }));
      }
  });
}

/// Elements, rows and figures named by refusals: indices differ, and results deviate to either side.
TEST(RecordedCertificates, Sentences) {
  const json now = apart([] {
    json all = json::array();
    const auto says = [&](const std::string& what, const Check& check) {
      try {
        const Certified certified = check();
        all.push_back({what, certified.holds ? "holds" : certified.values});
      } catch (const std::logic_error& e) {
        all.push_back({what, e.what()});
      }
    };
    const auto on_either_side = [&](const std::string& what, float& x, float off, const Check& check) {
      for (const float to : {x + off, x - off}) {
        const float right = std::exchange(x, to);
        says(fmt::format("{}, {:g}", what, to), check);
        x = right;
      }
    };
    // Products.
    Matrices p = product(4, 2, 1);
    // Signs of either kind.
    for (int calls = 0; calls < 3; ++calls) on_either_side("a product", p.c[2], 3, [&] { return p.certified(); });
    p.a[0] = kNaN, p.c[0] = kNaN;
    on_either_side("a product beside a NaN", p.c[2], 3, [&] { return p.certified(); });
    Matrices wide = product(3, 2, 4);
    wide.a[5] = kInf;
    wide.multiply();
    says("classes", [&] { return wide.c[10] = 7, wide.certified(); });
    Matrices exact = product(4, 2, 1);
    on_either_side("an exact product", exact.c[2], 1, [&] {
      return contract::freivalds_exact(matrix(exact.a, 4, 2), matrix(exact.b, 2, 1), matrix(exact.c, 4, 1));
    });
    says("no integer in c", [&] {
      return exact.c[1] = 0.5F,
             contract::freivalds_exact(matrix(exact.a, 4, 2), matrix(exact.b, 2, 1), matrix(exact.c, 4, 1));
    });
    says("no integer in a", [&] {
      return exact.a[1] = 0.5F,
             contract::freivalds_exact(matrix(exact.a, 4, 2), matrix(exact.b, 2, 1), matrix(exact.c, 4, 1));
    });
    const Quantized w(4, 3, {kInf, 1, kInf, kInf});
    const Floats x{1, 2, 3, 1, 1, 1, 0x1.8p127F, 1, 1}, wrong(12, 100);
    says("left out",
         [&] { return contract::freivalds_nf4_nt(matrix(x, 3, 3), w.code_view(), w.scales(), matrix(wrong, 3, 4)); });
    // Rows.
    Floats scores{1, 2, 3, 4, 0, 0, 0, 0, -kInf, -kInf, -kInf, -kInf},
        y{0.0320586F, 0.0871443F, 0.2368828F, 0.6439143F, 0.25F, 0.25F, 0.25F, 0.25F, 0, 0, 0, 0};
    const Check softmax = [&] { return contract::distributions(matrix(scores, 3, 4), matrix(y, 3, 4)); };
    on_either_side("a probability", y[6], 0.5F, softmax);
    on_either_side("a probability", y[6], 2, softmax);
    on_either_side("a masked row", y[11], 0.125F, softmax);
    Floats weight{1, 2, 4}, rrms{1, 0.5F};
    Stored rows{DType::f32, {2, 3}, {1, 1, 1, 2, -2, 2}}, normal{DType::f32, {2, 3}, {1, 2, 4, 1, -2, 4}};
    const Check rmsnorm = [&] {
      return contract::unit_mean_square(rows.view(), vector_of(weight), normal.view(), vector_of(rrms), 0);
    };
    says("rmsnorm", rmsnorm);
    on_either_side("y of rmsnorm", normal.values[5], 1, rmsnorm);
    rrms[1] = 0;
    says("rrms", rmsnorm);
    rrms[1] = 0.5F, normal.values[5] = kNaN;
    says("a NaN", rmsnorm);
    Stored from{DType::f32, {2, 3, 8}, integers(48, 1)};
    for (const double interleaved : {0.0, 1.0}) {
      Stored to = from;
      on_either_side("a pair", to.values[39], 1,
                     [&] { return contract::pair_norms(from.view(), to.view(), interleaved); });
      on_either_side("another pair", to.values[26], 1,
                     [&] { return contract::pair_norms(from.view(), to.view(), interleaved); });
    }
    // Attention: two sequences, three queries, four heads, two groups, five columns; the first query of the first
    // sequence sees no key.
    Stored v{DType::f32, {2, 3, 2, 5}, integers(60, 2)}, attended{DType::f32, {2, 3, 4, 5}, {}};
    Floats logsumexp(24, 0.5F);
    const Integers lengths{3, 3}, starts{0, 0};
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t h = 0; h < 4; ++h)
          for (std::size_t c = 0; c < 5; ++c) attended.values.push_back(v.values[(b * 3 * 2 + h / 2) * 5 + c]);
    const Integers none{3, 0};
    const auto attention = [&](const Integers& keys) {
      return contract::within_hull(v.view(), vector_of(keys), vector_of(starts), attended.view(),
                                   {logsumexp.data(), {2, 4, 3}}, 0);
    };
    says("attention", [&] { return attention(lengths); });
    on_either_side("y of attention", attended.values[((3 + 2) * 4 + 3) * 5 + 4], 10,
                   [&] { return attention(lengths); });
    const std::size_t last = (1 * 4 + 3) * 3 + 2;
    logsumexp[last] = -kInf;
    attended.values[((3 + 2) * 4 + 3) * 5 + 4] = 2.5F;
    for (std::size_t c = 0; c < 4; ++c) attended.values[((3 + 2) * 4 + 3) * 5 + c] = 0;
    says("a masked query", [&] { return attention(lengths); });
    for (std::size_t other = 12; other < 24; ++other) logsumexp[other] = other == 12 + 2 * 3 ? 0.25F : -kInf;
    for (std::size_t other = 60; other < 120; ++other) attended.values[other] = 0;
    says("a query that sees nothing", [&] { return attention(none); });
    for (const DType dtype : kStorages) {
      Stored row{dtype, {2, 3, 5}, integers(30, 1)}, cache{dtype, {2, 6, 3, 5}, Floats(180, 1)};
      const Integers places{1, 5};
      for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t i = 0; i < 15; ++i)
          cache.values[(b * 6 + static_cast<std::size_t>(places[b])) * 15 + i] = row.values[b * 15 + i];
      on_either_side("a cache", cache.values[(6 + 5) * 15 + 2 * 5 + 4], 0.25F,
                     [&] { return contract::appended(row.view(), vector_of(places), cache.view()); });
    }
    Stored q{DType::f32, {2, 4, 5}, integers(40, 1)}, k{DType::f32, {2, 3, 2, 5}, integers(60, 3)},
        decoded{DType::f32, {2, 4, 5}, {}};
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t h = 0; h < 4; ++h)
        for (std::size_t c = 0; c < 5; ++c) decoded.values.push_back(v.values[(b * 3 * 2 + h / 2) * 5 + c]);
    const Integers held{0, 2};
    const Check decoding = [&] {
      return contract::within_cache(q.view(), k.view(), v.view(), vector_of(held), 0.5, decoded.view());
    };
    says("decoding", decoding);
    on_either_side("y of decoding", decoded.values[(4 + 3) * 5 + 2], 10, decoding);
    // Codecs.
    Floats of_codes(2 * 66, 0), absmax{1, 1, 1, 2};
    const Bytes zero_codes(2 * 64, kNf4ZeroPair);
    on_either_side("a code", of_codes[66 + 65], 1, [&] {
      return contract::nf4_nearest(matrix(of_codes, 2, 66), {zero_codes.data(), {2, 64}}, matrix(absmax, 2, 2));
    });
    const Bytes zeros(4 * static_cast<std::size_t>(q4_k::kBytes));
    Floats values(2 * 300, 0);
    const auto q4 = [&](const Bytes& blocks) {
      return contract::q4_k_round_trip(matrix(values, 2, 300), {blocks.data(), {2, 2 * q4_k::kBytes}});
    };
    on_either_side("a value", values[300 + 257], 2, [&] { return q4(zeros); });
    Bytes undefined = zeros;
    undefined[3 * static_cast<std::size_t>(q4_k::kBytes)] = q4_k::kUndefined.bits & 0xffU;
    undefined[3 * static_cast<std::size_t>(q4_k::kBytes) + 1] = q4_k::kUndefined.bits >> 8U;
    says("an undefined block", [&] { return q4(undefined); });
    // Scales: 300 of them, two groups, around 2.
    Floats scales(300, 2), offset{2}, group_scales{0, 0};
    Bytes codes(512, kAbsmaxZero);
    const Check quantized = [&] {
      return contract::nf4_absmax_nearest(matrix(scales, 30, 10), {codes.data(), {512}}, vector_of(group_scales),
                                          vector_of(offset));
    };
    says("scales", quantized);
    on_either_side("an offset", offset[0], 0.5F, quantized);
    on_either_side("a scale of scales", group_scales[1], 0.5F, quantized);
    codes[257] = 3;
    says("a code of zeros", quantized);
    codes[257] = kAbsmaxZero;
    scales[257] = 3, scales[258] = 1, group_scales[1] = 1;
    for (const int wrong_code : {0, 255}) {
      codes[257] = 255, codes[258] = 0;
      says("codes of both ends", quantized);
      codes[259] = static_cast<std::uint8_t>(wrong_code);
      says(fmt::format("the code {} of 0", wrong_code), quantized);
      codes[259] = kAbsmaxZero;
      codes[257] = kAbsmaxZero;
      says("the code of 0 for 1", quantized);
      codes[257] = 255, codes[258] = kAbsmaxZero;
      says("the code of 0 for -1", quantized);
    }
    scales[1] = kNaN;
    says("undefined, but for its scales", quantized);
    group_scales = {kNaN, 1};
    says("undefined, but for its second scale", quantized);
    group_scales = {kNaN, kNaN};
    says("undefined, but for its offset", quantized);
    offset = {kNaN};
    says("undefined", quantized);
    return all;
  });
  expect_recorded(file_of("certificates"), "sentences", now);
}

}  // namespace
}  // namespace assay::falsify::recorded
