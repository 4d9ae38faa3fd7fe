// Sines and cosines of rotary angles: the accuracy of `octant` in contracts/numerics.yaml, and exactness of phases.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/accuracy.hpp"
#include "core/rope_rotation.hpp"
#include "falsify/engine/random.hpp"
#include "kernels/rope.hpp"

namespace assay::numbers::rope_test {
namespace {

using falsify::Random;

struct Worst {
  double cos = 0, sin = 0;

  void see(const CosSin& got, long double cosine, long double sine) {
    cos = std::max(cos, relative(got.cos, cosine));
    sin = std::max(sin, relative(got.sin, sine));
  }
  static double relative(float got, long double want) {
    return want == 0 ? std::fabs(static_cast<double>(got)) : static_cast<double>(std::fabs((got - want) / want));
  }
  void expect_promised() const {
    const double of_cos = accuracy(FunctionLibrary::octant, Function::cos).relative(0),
                 of_sin = accuracy(FunctionLibrary::octant, Function::sin).relative(0);
    EXPECT_LE(cos, of_cos);
    EXPECT_LE(sin, of_sin);
    // A guarantee that no result approaches would hide faults.
    EXPECT_GT(cos, of_cos / 4);
    EXPECT_GT(sin, of_sin / 4);
  }
};

/// Checks cos and sin of 2 pi phase / 2^64, reduced in integers to at most an eighth of a turn.
void see_phase(Worst& worst, std::uint64_t phase) {
  const auto quarters = static_cast<unsigned>((phase + (std::uint64_t{1} << 61)) >> 62);
  const auto rest = static_cast<std::int64_t>(phase - (std::uint64_t{quarters & 3U} << 62));
  const long double r = static_cast<long double>(rest) * (2 * std::numbers::pi_v<long double> * 0x1p-64L);
  const long double c = std::cos(r), s = std::sin(r);
  const long double cosines[] = {c, -s, -c, s}, sines[] = {s, c, -s, -c};
  worst.see(phase_cos_sin(phase), cosines[quarters & 3U], sines[quarters & 3U]);
}

TEST(Octant, PhasesOfAllOctantsAreWithinThePromise) {
  Random random(1);
  Worst worst;
  for (std::uint64_t octant = 0; octant < 8; ++octant)
    for (int trial = 0; trial < 100'000; ++trial) {
      const std::uint64_t within = random.bits() >> (3 + random.below(61));  // also near the octant's start
      see_phase(worst, (octant << 61) + within);
      see_phase(worst, (octant << 61) - 1 - within);
    }
  worst.expect_promised();
}

TEST(Octant, FloatAnglesAreWithinThePromise) {
  Random random(2);
  Worst worst;
  for (int trial = 0; trial < 400'000; ++trial) {
    float angle = static_cast<float>(std::exp2(-20 + 41 * random.uniform()));
    if (trial % 4 == 0)  // the floats nearest to multiples of a quarter turn
      angle = static_cast<float>(static_cast<double>(random.below(1'335'088)) * (std::numbers::pi / 2));
    worst.see(float_cos_sin(angle), std::cos(static_cast<long double>(angle)),
              std::sin(static_cast<long double>(angle)));
  }
  worst.expect_promised();
}

TEST(Octant, RotationsAreRightAtTheLastPosition) {
  Worst worst;
  for (const double theta : {1e4, 5e5, 1e6})
    for (const Index position : {Index{1}, Index{4096}, Index{131071}, Index{131072}, Index{1048575}, Index{2097150}}) {
      const std::vector<RopeFrequency>& frequencies = rope_frequencies(theta, 128, false);
      for (Index i = 0; i < 64; ++i) {
        const Rotation<Digits50> want =
            rotation<Digits50>(Digits50(position) * pow(Digits50(theta), Digits50(-2 * i) / 128));
        worst.see(rope_cos_sin(frequencies[static_cast<std::size_t>(i)], position, false),
                  static_cast<long double>(want.cos), static_cast<long double>(want.sin));
      }
    }
  worst.expect_promised();
}

TEST(Octant, Float32AnglesAreTheFloatNearestToTheProduct) {
  const std::vector<RopeFrequency>& frequencies = rope_frequencies(1e4, 128, true);
  Worst worst;
  for (Index i = 0; i < 64; ++i) {
    const auto frequency = static_cast<float>(std::pow(1e4L, -2.0L * static_cast<long double>(i) / 128));
    ASSERT_EQ(std::bit_cast<float>(frequencies[static_cast<std::size_t>(i)].word[0]), frequency);
    for (const Index position : {Index{1}, Index{1000}, Index{131072}, Index{2097150}}) {
      const float angle = static_cast<float>(position) * frequency;
      worst.see(rope_cos_sin(frequencies[static_cast<std::size_t>(i)], position, true),
                std::cos(static_cast<long double>(angle)), std::sin(static_cast<long double>(angle)));
    }
  }
  worst.expect_promised();
}

TEST(Octant, Float32AnglesHaveOneWord) {
  for (const RopeFrequency& f : rope_frequencies(1e4, 64, true))
    for (int w = 1; w < 4; ++w) EXPECT_EQ(f.word[w], 0U);
}

TEST(Octant, PositionZeroIsNoRotation) {
  for (const bool float32_angle : {false, true})
    for (const RopeFrequency& f : rope_frequencies(1e4, 64, float32_angle)) {
      const CosSin r = rope_cos_sin(f, 0, float32_angle);
      EXPECT_EQ(r.cos, 1);
      EXPECT_EQ(r.sin, 0);
    }
}

}  // namespace
}  // namespace assay::numbers::rope_test
