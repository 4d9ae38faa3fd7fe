// mma.sync and ldmatrix in software, and the operands that kernels load from rows in shared memory.
#include "kernels/cuda/mma.cuh"

#include "tests/cuda_host/host.hpp"

namespace assay {
namespace {

using cuda_host_kernels::TensorCore;

constexpr int kPitch = 24, kD = 16;

template <class S>
struct alignas(16) Rows {
  S x[16 * kPitch], y[16 * kPitch], z[16 * kPitch];
  float dots[16][16], means[16][16];
};

float value(int i, int j) { return static_cast<float>((i * 37 + j * 11) % 13 - 6); }

/// dots = x yᵀ and means = dots z, for 16 rows of 16 elements each.
template <class S>
__global__ void multiply(Rows<S>* m) {
  float dots[2][4], means[2][4] = {};
  cuda_host_kernels::dot_rows(m->x, m->y, kPitch, 16, kD, dots);
  cuda_host_kernels::add_weighted_rows(dots, m->z, kPitch, 16, kD, means);
  const int lane = static_cast<int>(threadIdx.x);
  for (int n = 0; n < 2; ++n)
    for (int e = 0; e < 4; ++e) {
      const int row = lane / 4 + e / 2 * 8, column = 8 * n + lane % 4 * 2 + e % 2;
      m->dots[row][column] = dots[n][e];
      m->means[row][column] = means[n][e];
    }
}

template <class S>
class Mma : public testing::Test {};
using Types = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(Mma, Types, );

TYPED_TEST(Mma, MultipliesIntegersExactly) {
  Rows<TypeParam> m{};
  const auto set = [](TypeParam& to, float x) { cuda_host_kernels::store(to, x); };
  for (int i = 0; i < 16; ++i)
    for (int c = 0; c < kD; ++c) {
      // Keeps dots small, since they become weights of the type.
      set(m.x[i * kPitch + c], i == c % 8 ? value(i, c) : 0);
      set(m.y[i * kPitch + c], value(c, i));
      set(m.z[i * kPitch + c], value(i + 3, c));
    }
  run_here(&multiply<TypeParam>, {dim3(1), dim3(32)}, &m);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      float dot = 0;
      for (int c = 0; c < kD; ++c)
        dot += cuda_host_kernels::load(m.x[i * kPitch + c]) * cuda_host_kernels::load(m.y[j * kPitch + c]);
      ASSERT_EQ(m.dots[i][j], dot) << i << ", " << j;
      float mean = 0;
      for (int k = 0; k < 16; ++k) mean += m.dots[i][k] * cuda_host_kernels::load(m.z[k * kPitch + j]);
      ASSERT_EQ(m.means[i][j], mean) << i << ", " << j;
    }
}

/// Returns the product of one-element factors.
float product(float a, float b) {
  Rows<float> m{};
  m.x[0] = a;
  m.y[0] = b;
  run_here(&multiply<float>, {dim3(1), dim3(32)}, &m);
  return m.dots[0][0];
}

/// Matches an H100 except for the bits that it keeps beyond 24: rows of 2^15 x, y, -2^15 x.
TEST(Mma, AlignsSubnormalFactorsAsTheSmallestNormalNumber) {
  const auto sum_of = [](auto type, float large, float factor, float beside) {
    using S = decltype(type);
    Rows<S> m{};
    const auto set = [](S& to, float x) { cuda_host_kernels::store(to, x); };
    const float x[] = {large, beside, -large}, y[] = {factor, beside, factor};
    for (int c = 0; c < 3; ++c) set(m.x[c], x[c]), set(m.y[c], y[c]);
    run_here(&multiply<S>, {dim3(1), dim3(32)}, &m);
    return m.dots[0][0];
  };
  EXPECT_EQ(sum_of(Half{}, 0x1p15F, 0x1p-24F, 0x1p-11F), 0x1p-22F) << "2^1 and 23 bits below";
  EXPECT_EQ(sum_of(Half{}, 0x1p15F, 0x1p-24F, 0x1p-12F), 0);
  EXPECT_EQ(sum_of(Half{}, 0x1p5F, 0x1p-14F, 0x1p-12F), 0x1p-24F) << "a normal factor has its own exponent";
  EXPECT_EQ(sum_of(Half{}, 0x1p15F, 0, 0x1p-12F), 0x1p-24F) << "zero has none";
  EXPECT_EQ(sum_of(BFloat16{}, 0x1p120F, 0x1p-133F, 0x1p-14F), 0x1p-28F) << "2^-6 and 23 bits below";
  EXPECT_EQ(sum_of(BFloat16{}, 0x1p120F, 0x1p-133F, 0x1p-15F), 0);
}

TEST(MmaTf32x3, HoldsTwentyTwoBitsOfAFactor) {
  const float x = 1 + 0x1p-10f + 0x1p-21f, y = 1 + 0x3p-20f;
  EXPECT_EQ(product(x, 1), x);
  EXPECT_EQ(product(x, y), 1 + 0x1p-10f + 0x1p-21f + 0x3p-20f);  // the product of the lower parts is omitted
  EXPECT_EQ(product(1 + 0x1p-23f, 1 + 0x1p-20f), 1 + 0x9p-23f);
  EXPECT_TRUE(std::isnan(product(INFINITY, 1)));
  EXPECT_TRUE(std::isnan(product(NAN, 1)));
}

__global__ void load_at(const float* memory) {
  unsigned to[4];
  cuda_host::load_matrices(to, memory, false, std::source_location::current());
}

TEST(Mma, NeedsAWholeWarpAndAlignedRows) {
  Rows<float> m{};
  expect_error([&] { run_here(&multiply<float>, {dim3(1), dim3(31)}, &m); }, "warp mask");
  expect_error([&] { run_here(&load_at, {dim3(1), dim3(32)}, m.x + 1); }, "misaligned address", {"ldmatrix"});
}

}  // namespace
}  // namespace assay
