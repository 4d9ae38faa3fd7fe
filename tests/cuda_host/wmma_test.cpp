// Tensor cores in software.
#include <mma.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/cuda_host/host.hpp"

namespace assay {
namespace {

namespace wmma = nvcuda::wmma;

struct alignas(32) Matrices {
  float a[16 * 8], b[8 * 16], c[16 * 16];
};

/// c = A·B + first, A row-major [16,8] and B [8,16], or both transposed in memory.
template <class Layout>
__global__ void multiply(Matrices* m, float first, bool round) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, Layout> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, Layout> b;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
  constexpr bool by_rows = std::is_same_v<Layout, wmma::row_major>;
  wmma::load_matrix_sync(a, m->a, by_rows ? 8 : 16);
  wmma::load_matrix_sync(b, m->b, by_rows ? 16 : 8);
  if (round) {
    for (float& x : a.x) x = wmma::__float_to_tf32(x);
    for (float& x : b.x) x = wmma::__float_to_tf32(x);
  }
  wmma::fill_fragment(c, first);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(m->c, c, 16, wmma::mem_row_major);
}

TEST(Wmma, MultipliesIntegersExactlyInBothLayouts) {
  Matrices rows, columns;
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 8; ++k) {
      rows.a[8 * i + k] = columns.a[16 * k + i] = static_cast<float>((i * 37 + k * 11) % 101 - 50);
      rows.b[16 * k + i] = columns.b[8 * i + k] = static_cast<float>((i * 13 + k * 29) % 97 - 48);
    }
  run_here(&multiply<wmma::row_major>, {dim3(1), dim3(32)}, &rows, 3.0f, true);
  run_here(&multiply<wmma::col_major>, {dim3(1), dim3(32)}, &columns, 3.0f, true);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      float sum = 3;
      for (int k = 0; k < 8; ++k) sum += rows.a[8 * i + k] * rows.b[16 * k + j];
      EXPECT_EQ(rows.c[16 * i + j], sum);
      EXPECT_EQ(columns.c[16 * i + j], sum);
    }
}

/// Returns the product of one-element factors.
float product(float a, float b, float first, bool round) {
  Matrices m{};
  m.a[0] = a;
  m.b[0] = b;
  run_here(&multiply<wmma::row_major>, {dim3(1), dim3(32)}, &m, first, round);
  return m.c[0];
}

TEST(Wmma, InputsHaveElevenBits) {
  const float x = 1 + 0x1.8p-11f;  // rounds up, truncates down
  EXPECT_EQ(product(x, 1, 0, true), 1 + 0x1p-10f);
  EXPECT_EQ(product(x, 1, 0, false), 1.0f);
}

TEST(Wmma, SumsAreTruncatedAtTheLargestExponent) {
  EXPECT_EQ(product(0x1p-13f, 0x1.8p-11f, 1, true), 1.0f);  // 0.75 of a last place
  EXPECT_EQ(product(0x1p-13f, -0x1.8p-11f, 1, true), 1.0f);
  EXPECT_EQ(product(0x1p-13f, 0x1.cp-11f, -1, true), -1.0f);
  EXPECT_EQ(product(0x1p-11f, 0x1p-12f, 1, true), 1 + 0x1p-23f);
  // The sum is truncated too: rounding to nearest would give 2 + 2^-21.
  EXPECT_EQ(product(1, 1, 1 + 0x3p-23f, true), 2 + 0x1p-22f);
  EXPECT_EQ(product(0x1p-70f, 0x1p-70f, 0, true), 0x1p-140f);  // keeps subnormals
  EXPECT_EQ(product(2, 0x1p127f, 0, true), std::numeric_limits<float>::infinity());
  EXPECT_EQ(product(-1, std::numeric_limits<float>::infinity(), 5, true), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(product(0, std::numeric_limits<float>::infinity(), 5, true)));
  EXPECT_TRUE(std::isnan(product(NAN, 1, 5, true)));
}

TEST(Wmma, RoundsTiesAwayFromZero) {
  EXPECT_EQ(cuda_host::to_tf32(1 + 0x1p-11f), 1 + 0x1p-10f);
  EXPECT_EQ(cuda_host::to_tf32(-1 - 0x1p-11f), -1 - 0x1p-10f);
  EXPECT_EQ(cuda_host::to_tf32(1 + 0x1.ffep-12f), 1.0f);
  EXPECT_EQ(cuda_host::to_tf32(FLT_MAX), std::numeric_limits<float>::infinity());
  EXPECT_EQ(cuda_host::to_tf32(-std::numeric_limits<float>::infinity()), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(cuda_host::to_tf32(std::bit_cast<float>(0x7fffffffU))));
  EXPECT_TRUE(std::signbit(cuda_host::to_tf32(-0.0f)));
}

__global__ void load_at(const float* memory, unsigned leading_dimension) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
  wmma::load_matrix_sync(a, memory, leading_dimension);
}

TEST(Wmma, NeedsAWholeWarpAndAlignedMemory) {
  Matrices m{};
  expect_error([&] { run_here(&multiply<wmma::row_major>, {dim3(1), dim3(31)}, &m, 0.0f, true); }, "warp mask");
  expect_error([&] { run_here(&load_at, {dim3(1), dim3(32)}, m.a + 4, 8U); }, "misaligned address");
  expect_error([&] { run_here(&load_at, {dim3(1), dim3(32)}, m.a, 9U); }, "misaligned address");
}

}  // namespace
}  // namespace assay
