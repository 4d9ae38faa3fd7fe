// Certificates of linear layers, their adapters and decoding: correct results hold in any order of evaluation, wrong
// ones fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "contract/certificates/attention_decode.hpp"
#include "contract/certificates/linear.hpp"
#include "contract/certificates/adamw_step.hpp"
#include "contract/certificates/lora_linear.hpp"
#include "contract/certificates/nf4_matmul.hpp"
#include "contract/certificates/freivalds_partial.hpp"
#include "evaluation.hpp"
#include "core/half.hpp"
#include "vectors.hpp"

namespace assay::numbers::layer_certificates_test {
namespace {

using contract::Certified;

View<const float> matrix(const Vector& v, Index rows, Index columns) { return {v.data(), {rows, columns}}; }
const float* row(const Vector& v, Index i, Index columns) { return v.data() + i * columns; }

/// The operand that the scale of an adapter multiplies.
enum class Place { to_t, to_b, to_sum };
constexpr Place kPlaces[] = {Place::to_t, Place::to_b, Place::to_sum};

struct Layer {
  Index s, in, out, r, biases;
  float alpha;
  Vector x, weight, bias, b, t, y;

  Layer(Distribution d, Index biases, float alpha, Random& random)
      : s(random.between(1, 20)), in(random.between(0, 70)), out(random.between(1, 40)), r(random.between(1, 20)),
        biases(biases), alpha(alpha), x(make_vector(d, true, s * in, random)),
        weight(make_vector(d, false, out * in, random)), bias(make_vector(d, false, biases * out, random)),
        b(make_vector(d, false, out * r, random)), t(make_vector(d, true, s * r, random)),
        y(static_cast<std::size_t>(s * out)) {}

  float scale() const { return alpha / static_cast<float>(r); }
  void compute(Dot dot, bool adapter, Place place) {
    for (Index i = 0; i < s; ++i)
      for (Index o = 0; o < out; ++o) {
        float sum = dot(row(x, i, in), row(weight, o, in), in);
        if (biases > 0) sum += bias[static_cast<std::size_t>(o)];
        if (adapter) sum += adapted(dot, place, i, o);
        y[static_cast<std::size_t>(i * out + o)] = sum;
      }
  }
  Certified certified() const {
    return contract::freivalds_linear(matrix(x, s, in), matrix(weight, out, in), matrix(bias, biases, out),
                                      matrix(y, s, out));
  }
  Certified certified_adapter() const {
    return contract::freivalds_lora(matrix(x, s, in), matrix(weight, out, in), matrix(bias, biases, out),
                                    matrix(t, s, r), matrix(b, out, r), alpha, matrix(y, s, out));
  }

 private:
  float adapted(Dot dot, Place place, Index i, Index o) const {
    if (place == Place::to_sum) return scale() * dot(row(t, i, r), row(b, o, r), r);
    Vector scaled(row(place == Place::to_t ? t : b, place == Place::to_t ? i : o, r),
                  row(place == Place::to_t ? t : b, place == Place::to_t ? i : o, r) + r);
    for (float& e : scaled) e *= scale();
    return place == Place::to_t ? dot(scaled.data(), row(b, o, r), r) : dot(row(t, i, r), scaled.data(), r);
  }
};

TEST(LinearCertificate, HoldsForCorrectLayers) {
  Random random(21);
  for (Distribution d : kDistributions)
    for (Index biases : {0, 1})
      for (const Evaluation& e : kEvaluations)
        for (int repeat = 0; repeat < 10; ++repeat) {
          Layer layer(d, biases, 1, random);
          layer.compute(e.dot, false, Place::to_t);
          const Certified result = layer.certified();
          ASSERT_TRUE(result.holds) << e.name << ", " << name(d) << ": " << result.values;
        }
}

TEST(LinearCertificate, SeesABiasThatIsDroppedOrAddedTwice) {
  Random random(22);
  for (const float times : {0.0F, 2.0F}) {
    Layer layer(Distribution::gaussian, 1, 1, random);
    for (float& e : layer.bias) e *= times;
    layer.compute(fused, false, Place::to_t);
    for (float& e : layer.bias) e = times == 0 ? 1 : e / times;
    EXPECT_FALSE(layer.certified().holds);
  }
}

TEST(AdapterCertificate, HoldsWhereverTheScaleGoes) {
  Random random(23);
  for (Distribution d : kDistributions)
    for (Place place : kPlaces)
      for (const float alpha : {0.0625F, 1.0F, 16.0F, 8192.0F})
        for (const Evaluation& e : kEvaluations)
          for (Index biases : {0, 1}) {
            Layer layer(d, biases, alpha, random);
            layer.compute(e.dot, true, place);
            const Certified result = layer.certified_adapter();
            ASSERT_TRUE(result.holds) << e.name << ", " << name(d) << ", alpha " << alpha << ": " << result.values;
          }
}

TEST(AdapterCertificate, SeesFaults) {
  Random random(24);
  for (int fault = 0; fault < 4; ++fault) {
    Layer layer(Distribution::gaussian, 1, 16, random);
    Layer wrong = layer;
    if (fault == 0) wrong.alpha *= static_cast<float>(layer.r) * 1.5F;  // the scale is not alpha / r
    if (fault == 1) wrong.b.assign(layer.b.size(), 0);
    if (fault == 2) std::reverse(wrong.t.begin(), wrong.t.end());
    wrong.compute(fused, true, Place::to_sum);
    layer.y = wrong.y;
    if (fault == 3) {
      layer.compute(fused, true, Place::to_sum);
      layer.y.back() += 1;
    }
    const Certified result = layer.certified_adapter();
    EXPECT_FALSE(result.holds) << fault;
    EXPECT_NE(result.values, "") << fault;
  }
}

/// Rounds every element to the format and returns the tensor in it.
std::vector<std::uint16_t> bits_of(Vector& v, DType dtype) {
  std::vector<std::uint16_t> bits;
  for (float& e : v) {
    bits.push_back(dtype == DType::f16 ? to_half(e).bits : to_bfloat16(e).bits);
    e = stored(dtype, e);
  }
  return bits;
}

/// The certificate of a layer whose x, weight, bias and y are in 16 bits; `layer` was computed from rounded ones.
Certified certified_in(DType dtype, Layer& layer) {
  std::vector<std::uint16_t> x = bits_of(layer.x, dtype), weight = bits_of(layer.weight, dtype),
                             bias = bits_of(layer.bias, dtype), y = bits_of(layer.y, dtype);
  const auto view = [&](std::vector<std::uint16_t>& bits, Index rows, Index columns) {
    return StorageView(dtype, bits.data(), {rows, columns}, {columns, 1});
  };
  return contract::freivalds_lora(view(x, layer.s, layer.in), view(weight, layer.out, layer.in),
                                  view(bias, layer.biases, layer.out), matrix(layer.t, layer.s, layer.r),
                                  matrix(layer.b, layer.out, layer.r), layer.alpha, view(y, layer.s, layer.out));
}

TEST(AdapterCertificate, HoldsForOneRoundingTo16Bits) {
  Random random(26);
  for (const DType dtype : {DType::f16, DType::bf16})
    for (Place place : kPlaces)
      for (const Evaluation& e : kEvaluations)
        for (Index biases : {0, 1}) {
          Layer layer(Distribution::gaussian, biases, 16, random);
          for (Vector* v : {&layer.x, &layer.weight, &layer.bias}) bits_of(*v, dtype);
          layer.compute(e.dot, true, place);
          const Certified result = certified_in(dtype, layer);
          ASSERT_TRUE(result.holds) << e.name << ", " << name(dtype) << ": " << result.values;
        }
}

TEST(AdapterCertificate, SeesFaultsIn16Bits) {
  Random random(27);
  for (const DType dtype : {DType::f16, DType::bf16})
    for (int fault = 0; fault < 3; ++fault) {
      Layer layer(Distribution::gaussian, 1, 16, random);
      for (Vector* v : {&layer.x, &layer.weight, &layer.bias}) bits_of(*v, dtype);
      Layer wrong = layer;
      if (fault == 0) wrong.alpha *= static_cast<float>(layer.r) * 1.5F;
      if (fault == 1) wrong.b.assign(layer.b.size(), 0);
      wrong.compute(fused, true, Place::to_sum);
      layer.y = wrong.y;
      if (fault == 2) layer.y.back() = 2 * layer.y.back() + 32;
      EXPECT_FALSE(certified_in(dtype, layer).holds) << name(dtype) << ", fault " << fault;
    }
}

/// A copy of one parameter, given by its bits.
bool is_copy(DType dtype, float p, std::uint16_t bits) {
  return contract::rounded_once({&p, {1}}, StorageView(dtype, &bits, {1, 1}, {1, 1})).holds;
}

TEST(CopyCertificate, HoldsForOneRoundingAndForNothingElse) {
  Random random(28);
  for (const DType dtype : {DType::f16, DType::bf16})
    for (int n = 0; n < 1000; ++n) {
      const auto p = static_cast<float>(std::ldexp(random.gaussian(), static_cast<int>(random.between(-20, 4))));
      const std::uint16_t right = dtype == DType::f16 ? to_half(p).bits : to_bfloat16(p).bits;
      ASSERT_TRUE(is_copy(dtype, p, right)) << p;
      for (const int off : {-1, 1, 0x8000})
        ASSERT_FALSE(is_copy(dtype, p, static_cast<std::uint16_t>(right + off))) << p << ", " << off;
    }
  // Halfway between two neighbours the even one is right.
  EXPECT_TRUE(is_copy(DType::bf16, 0x1.01p0F, 0x3f80));
  EXPECT_FALSE(is_copy(DType::bf16, 0x1.01p0F, 0x3f81));
  EXPECT_TRUE(is_copy(DType::f16, 0x1.006p0F, 0x3c02));
  EXPECT_FALSE(is_copy(DType::f16, 0x1.006p0F, 0x3c01));
  EXPECT_TRUE(is_copy(DType::f16, 65520, 0x7c00)) << "infinite";
  EXPECT_FALSE(is_copy(DType::f16, 65520, 0x7bff)) << "saturated";
  EXPECT_TRUE(is_copy(DType::f16, 0x1p-24F, 1)) << "the smallest number of f16";
  EXPECT_FALSE(is_copy(DType::f16, 0x1p-24F, 0));
}

TEST(CopyCertificate, TakesAnyNanAndEveryFlushedSubnormal) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(is_copy(DType::bf16, kNan, 0x7fc1));
  EXPECT_FALSE(is_copy(DType::bf16, kNan, 0x7f80));
  EXPECT_FALSE(is_copy(DType::bf16, 0x1p-127F, 0));
  const ArithmeticScope scope({.flushes_subnormals = true});
  EXPECT_TRUE(is_copy(DType::bf16, 0x1p-127F, 0));
  EXPECT_TRUE(is_copy(DType::bf16, -0x1p-127F, 0x8000));
  EXPECT_FALSE(is_copy(DType::bf16, 0x1p-126F, 0));
}

TEST(CopyCertificate, ComparesAnF32CopyBitByBit) {
  const float p[] = {1, -0.0F, 0x1.000002p0F};
  float copy[] = {1, -0.0F, 0x1.000002p0F};
  const auto holds = [&] { return contract::rounded_once({p, {3}}, View<const float>(copy, {1, 3})).holds; };
  EXPECT_TRUE(holds());
  copy[1] = 0;
  EXPECT_FALSE(holds());
  copy[1] = -0.0F, copy[2] = 1;
  EXPECT_FALSE(holds());
}

TEST(AdapterCertificate, LeavesOutWhatOverflowsWithTheScaleAlone) {
  Random random(25);
  Layer layer(Distribution::gaussian, 0, 4096, random);
  layer.s = layer.r = 1, layer.in = 0, layer.out = 2;
  layer.x = layer.weight = {};
  layer.b = {1e36F, 1}, layer.t = {0};
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float first : {0.0F, kNan}) {
    layer.y = {first, 0};
    EXPECT_TRUE(layer.certified_adapter().holds) << first;
  }
  layer.y = {0, 1};
  EXPECT_FALSE(layer.certified_adapter().holds) << "what does not overflow is still looked at";
  layer.b = {0, 0}, layer.t = {1e36F}, layer.y = {kNan, kNan};
  EXPECT_TRUE(layer.certified_adapter().holds);
}

/// Certifies y = x · Wᵀ for one row of x and W [2, 64], where the first row has the code `code`.
Certified nf4_certified(float x, unsigned code, float scale, float y) {
  const Vector row(64, x);
  std::vector<std::uint8_t> codes(64, static_cast<std::uint8_t>(code << 4U | code));
  std::fill(codes.begin() + 32, codes.end(), std::uint8_t{0xff});
  const Vector scales{scale, 1}, result{y, 64 * x};
  return contract::freivalds_nf4_nt(matrix(row, 1, 64), {codes.data(), {2, 32}}, matrix(scales, 2, 1),
                                    matrix(result, 1, 2));
}

TEST(Nf4Certificate, TakesScalesOfTermsAndOfSums) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr unsigned kOne = 15, kZero = 7;
  EXPECT_TRUE(nf4_certified(1, kOne, 2, 128).holds);
  EXPECT_FALSE(nf4_certified(1, kOne, 2, 129).holds);
  for (const float y : {kInf, kNan}) EXPECT_TRUE(nf4_certified(1, kZero, kInf, y).holds) << y;
  EXPECT_FALSE(nf4_certified(1, kOne, kNan, 1).holds);
  // 64 times 2^123 overflows, and 64 times 2^123 times 2^-20 does not.
  EXPECT_TRUE(nf4_certified(0x1p123F, kOne, 0x1p-20F, kInf).holds);
  EXPECT_TRUE(nf4_certified(0x1p123F, kOne, 0x1p-20F, 0x1p109F).holds);
}

/// 2^127 + 2^127 - 2^127 - 2^127 times a scale of 2^-20: 0, or NaN if the sums precede the scale.
TEST(Nf4Certificate, LeavesOutWhatOverflowsBeforeItIsScaled) {
  const Vector x{0x1p127F, 0x1p127F, -0x1p127F, -0x1p127F}, scale{0x1p-20F};
  const std::vector<std::uint8_t> codes(32, 0xff);
  const auto holds = [&](const Vector& row, float y) {
    return contract::freivalds_nf4_nt(matrix(row, 1, 4), {codes.data(), {1, 32}}, matrix(scale, 1, 1), {&y, {1, 1}})
        .holds;
  };
  for (const float y : {0.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    EXPECT_TRUE(holds(x, y)) << y;
  const Vector small{0x1p100F, 0x1p100F, -0x1p100F, -0x1p100F};
  EXPECT_TRUE(holds(small, 0));
  EXPECT_FALSE(holds(small, std::numeric_limits<float>::quiet_NaN()));
}

TEST(Nf4Certificate, SaysWhatItLeftOut) {
  const Vector a{1, 2, 3, 4}, b{1, 0, 0, 1}, right{1, 2, 3, 4}, wrong{1, 2, 3, 5};
  contract::ExcludedLines left_out(2, 2);
  left_out.rows[0] = true;
  const auto check = [&](const Vector& c) {
    return contract::freivalds_partial(left_out, matrix(a, 2, 2), matrix(b, 2, 2), matrix(c, 2, 2));
  };
  EXPECT_TRUE(check(right).holds);
  EXPECT_TRUE(check({9, 9, 3, 4}).holds);
  ASSERT_FALSE(check(wrong).holds);
  EXPECT_EQ(check(wrong).values.find("without 1 rows and 0 columns in which correct kernels differ, "), 0U)
      << check(wrong).values;
}

/// Exactly the rows that may overflow are left out: a row that overflows when scaled before zero weights remove it, or
/// whose sum overflows before scaling.
TEST(Nf4Certificate, LeavesOutEveryRowThatOverflowsAndNoOther) {
  constexpr float kMax = std::numeric_limits<float>::max(), kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::uint8_t> zeros(32, 0x77), ones(32, 0xff);
  const Vector large{4}, small{0x1p-40F};
  for (std::size_t at = 0; at < 3; ++at)
    for (std::size_t wrong = 0; wrong < 3; ++wrong) {
      Vector dy(3, 1), dx(3, 0), x(6, 0), y(3, 0);
      dy[at] = kMax, dx[wrong] = kNan;
      EXPECT_EQ(
          contract::freivalds_nf4(matrix(dy, 3, 1), {zeros.data(), {1, 32}}, matrix(large, 1, 1), matrix(dx, 3, 1))
              .holds,
          wrong == at)
          << at << ' ' << wrong;
      x[2 * at] = kMax, x[2 * at + 1] = -kMax, y[wrong] = kNan;
      EXPECT_EQ(
          contract::freivalds_nf4_nt(matrix(x, 3, 2), {ones.data(), {1, 32}}, matrix(small, 1, 1), matrix(y, 3, 1))
              .holds,
          wrong == at)
          << at << ' ' << wrong;
    }
}

/// One sequence with two keys in its cache, one head of one element.
struct Decoded {
  Vector q{1}, k_cache{0.5F, -0.5F, 9}, v_cache{1, 3, 100}, y{2};
  std::vector<std::int32_t> lengths{1};

  Certified certified() const {
    const auto cache = [](const Vector& v) { return StorageView(View<const float>(v.data(), {1, 3, 1, 1})); };
    const auto head = [](const Vector& v) { return StorageView(View<const float>(v.data(), {1, 1, 1})); };
    return contract::within_cache(head(q), cache(k_cache), cache(v_cache), {lengths.data(), {1}}, 1, head(y));
  }
};

TEST(DecodeCertificate, EveryElementOfANewRowIsInTheCache) {
  const Vector row{1, 2, 3, 4, 5, 6};  // [1, 2, 3]
  Vector cache(24, 0);                 // [1, 4, 2, 3]
  const std::vector<std::int32_t> lengths{2};
  std::copy(row.begin(), row.end(), cache.begin() + 12);
  const auto holds = [&] {
    return contract::appended(StorageView(View<const float>(row.data(), {1, 2, 3})), {lengths.data(), {1}},
                              StorageView(View<const float>(cache.data(), {1, 4, 2, 3})))
        .holds;
  };
  EXPECT_TRUE(holds());
  for (std::size_t i = 12; i < 18; ++i) {
    cache[i] += 1;
    EXPECT_FALSE(holds()) << i;
    cache[i] -= 1;
  }
  cache[3] = cache[21] = 7;  // other rows of the cache
  EXPECT_TRUE(holds());
}

TEST(DecodeCertificate, KnowsWhatIsInTheCache) {
  Decoded d;
  for (const float inside : {1.0F, 2.0F, 3.0F}) {
    d.y = {inside};
    EXPECT_TRUE(d.certified().holds) << inside;
  }
  for (const float outside :
       {0.999F, 3.001F, 100.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    d.y = {outside};
    EXPECT_FALSE(d.certified().holds) << outside;
  }
  d.lengths = {2};  // the third value takes part
  d.y = {100};
  EXPECT_TRUE(d.certified().holds);
  d.y = {std::numeric_limits<float>::quiet_NaN()};
  EXPECT_FALSE(d.certified().holds);
  d.k_cache[0] = 1e38F, d.q = {1e20F};
  EXPECT_TRUE(d.certified().holds) << "a score that overflows, of the first key";
  d.k_cache[0] = 0.5F, d.q = {1};
  EXPECT_FALSE(d.certified().holds);
  d.q = {std::numeric_limits<float>::infinity()};
  EXPECT_TRUE(d.certified().holds) << "scores that are not finite give what they give";
}

/// Three heads with keys of their own, of two elements, and one key in two places: non-finite values in other heads, or
/// past the last key, must not make a score of the middle head overflow.
TEST(DecodeCertificate, OverflowIsTheHeadsOwn) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::int32_t> lengths{0};
  const Vector q{kInf, kInf, 1, 1, kInf, kInf}, finite(12, 1), v_cache(12, 1);
  Vector k_cache(12, kInf);
  k_cache[2] = k_cache[3] = 1;
  const auto holds = [&](const Vector& query, const Vector& keys, float middle) {
    const Vector y{1, 1, middle, middle, 1, 1};
    const auto cache = [](const Vector& v) { return StorageView(View<const float>(v.data(), {1, 2, 3, 2})); };
    const auto heads = [](const Vector& v) { return StorageView(View<const float>(v.data(), {1, 3, 2})); };
    return contract::within_cache(heads(query), cache(keys), cache(v_cache), {lengths.data(), {1}}, 1, heads(y)).holds;
  };
  for (const float middle : {0.0F, kNan}) {
    EXPECT_FALSE(holds(q, finite, middle)) << middle;
    EXPECT_FALSE(holds({1, 1, 1, 1, 1, 1}, k_cache, middle)) << middle;
    EXPECT_TRUE(holds({1, 1, 1, kInf, 1, 1}, finite, middle)) << middle;
  }
  EXPECT_TRUE(holds(q, k_cache, 1));
}

}  // namespace
}  // namespace assay::numbers::layer_certificates_test
