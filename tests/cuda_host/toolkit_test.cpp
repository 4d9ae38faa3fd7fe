// CUDA's toolkit as files of others use it: cooperative groups, atomics, 16-bit numbers, cuBLAS, overloads.
#include <as_nvcc_begins.h>  // before every other header

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cub/cub.cuh>

#include <cmath>
#include <limits>
#include <vector>

#include "host.hpp"

/// Would be ambiguous with the standard library's under C++20.
__device__ float lerp(float start, float end, float weight) { return fmaf(weight, end, fmaf(-weight, start, start)); }

namespace assay {
namespace {

namespace cg = cooperative_groups;

/// Runs f(i) in a block of `threads` and returns the results.
template <class T, class F>
std::vector<T> each(unsigned threads, F f) {
  static F* body;
  static T* results;
  body = &f;
  std::vector<T> out(threads);
  results = out.data();
  void (*const kernel)() = [] { results[threadIdx.x] = (*body)(static_cast<int>(threadIdx.x)); };
  run_here(kernel, {.grid = 1, .block = threads});
  return out;
}

TEST(Tile, GivesItsRanks) {
  const auto ranks = each<unsigned>(64, [](int) {
    const cg::thread_block block = cg::this_thread_block();
    const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    const auto inner = cg::tiled_partition<4>(tile);
    return tile.thread_rank() + 10 * tile.meta_group_rank() + 100 * tile.meta_group_size() + 1000 * tile.size() +
           100000 * inner.meta_group_rank() + 1000000 * inner.meta_group_size() + 10000000 * block.thread_rank();
  });
  for (unsigned t = 0; t < 64; ++t)
    EXPECT_EQ(ranks[t], t % 8 + 10 * (t / 8) + 800 + 8000 + 100000 * (t % 8 / 4) + 2000000 + 10000000 * t);
}

TEST(Tile, ShufflesWithinItself) {
  const auto moved = each<int>(48, [](int i) {
    const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    return tile.shfl(i, 3) + 100 * tile.shfl_up(i, 2) + 10000 * tile.shfl_down(i, 1) + 1000000 * tile.shfl_xor(i, 5);
  });
  for (int i = 0; i < 48; ++i) {
    const int first = i / 16 * 16, r = i % 16;
    EXPECT_EQ(moved[static_cast<std::size_t>(i)],
              first + 3 + 100 * (r < 2 ? i : i - 2) + 10000 * (r == 15 ? i : i + 1) + 1000000 * (first + (r ^ 5)));
  }
}

TEST(Tile, VotesByRank) {
  const auto votes = each<unsigned>(64, [](int i) {
    const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    const unsigned ballot = tile.ballot(i % 8 < i / 8);
    return ballot + 1000 * static_cast<unsigned>(tile.any(i % 8 < i / 8)) +
           10000 * static_cast<unsigned>(tile.all(i < 8));
  });
  for (unsigned t = 0; t < 64; ++t) {
    const unsigned n = t / 8;
    EXPECT_EQ(votes[t], (1U << n) - 1 + (n > 0 ? 1000 : 0) + (t < 8 ? 10000 : 0));
  }
}

struct Pair {
  double sum;
  int largest, smallest;
};

TEST(Tile, ReducesAndScans) {
  const auto results = each<Pair>(64, [](int i) {
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    Pair mine{double(i), i, i};
    mine = cg::reduce(warp, mine, [](Pair a, Pair b) {
      return Pair{a.sum + b.sum, a.largest < b.largest ? b.largest : a.largest, std::min(a.smallest, b.smallest)};
    });
    EXPECT_EQ(cg::reduce(warp, i, cg::plus<int>()), int(mine.sum));
    EXPECT_EQ(cg::reduce(warp, i, cg::greater<int>()), mine.largest);
    EXPECT_EQ(cg::reduce(warp, i, cg::less<int>()), mine.smallest);
    mine.largest = cg::inclusive_scan(warp, i % 32 + 1, cg::plus<int>());
    mine.smallest = cg::exclusive_scan(warp, i % 32 + 1);
    cg::sync(warp);
    return mine;
  });
  for (int i = 0; i < 64; ++i) {
    const Pair& p = results[static_cast<std::size_t>(i)];
    const int r = i % 32;
    EXPECT_EQ(p.sum, i < 32 ? 496 : 496 + 1024);
    EXPECT_EQ(p.largest, (r + 1) * (r + 2) / 2);
    EXPECT_EQ(p.smallest, r * (r + 1) / 2);
  }
}

TEST(Tile, NeedsAllItsThreads) {
  expect_error(
      [] {
        each<int>(32, [](int i) {
          const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
          return i == 13 ? 0 : cg::reduce(tile, i, cg::plus<int>());
        });
      },
      "warp mask", {"lanes that have exited at toolkit_test.cpp:"});
}

TEST(Cub, ReducesABlockForThreadZeroAlone) {
  const auto results = each<float>(96, [](int i) {
    using Reduce = cub::BlockReduce<float, 96>;
    __shared__ Reduce::TempStorage storage;
    const float sum = Reduce(storage).Sum(float(i));
    __syncthreads();
    const float most = Reduce(storage).Reduce(float(i), cub::Max());
    return i == 0 ? sum + 10000 * most : sum;
  });
  EXPECT_EQ(results[0], 95 * 48 + 950000);
  for (std::size_t i = 1; i < 96; ++i) EXPECT_FALSE(results[i] == 95 * 48) << i;
}

TEST(Atomic, EachOperation) {
  unsigned u = 5;
  int i = -3;
  float f = 1.0f;
  EXPECT_EQ(atomicAdd(&u, 2), 5U);
  EXPECT_EQ(atomicSub(&u, 1), 7U);
  EXPECT_EQ(atomicMax(&i, 4), -3);
  EXPECT_EQ(atomicMin(&i, 2), 4);
  EXPECT_EQ(atomicExch(&f, 2), 1.0f);
  EXPECT_EQ(atomicAdd(&f, 0.5), 2.0f);
  EXPECT_EQ(atomicInc(&u, 6), 6U);  // wraps to 0
  EXPECT_EQ(atomicInc(&u, 6), 0U);
  EXPECT_EQ(atomicDec(&u, 9), 1U);
  EXPECT_EQ(atomicDec(&u, 9), 0U);  // wraps to 9
  EXPECT_EQ(atomicCAS(&u, 9, 12), 9U);
  EXPECT_EQ(atomicCAS(&u, 9, 13), 12U);
  EXPECT_EQ(atomicAnd(&u, 4), 12U);
  EXPECT_EQ(atomicOr(&u, 3), 4U);
  EXPECT_EQ(atomicXor(&u, 1), 7U);
  EXPECT_EQ(u, 6U);
  EXPECT_EQ(i, 2);
  EXPECT_EQ(f, 2.5f);
}

TEST(Overloads, AreThoseOfCuda) {
  static_assert(std::is_same_v<decltype(min(1, 2U)), unsigned>);
  static_assert(std::is_same_v<decltype(max(1L, 2L)), long>);
  static_assert(std::is_same_v<decltype(min(1.0f, 2.0)), double>);
  EXPECT_EQ(min(-1, 7U), 7U);  // -1 is the largest unsigned
  EXPECT_EQ(max(-1, 7U), ~0U);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(max(nan, 1.0f), 1.0f);
  EXPECT_EQ(min(2.0f, nan), 2.0f);
  EXPECT_EQ(lerp(2.0f, 4.0f, 0.25f), 2.5f);
  EXPECT_EQ(__expf(1.0f), std::exp(1.0f));
  EXPECT_EQ(__fdividef(1.0f, 3.0f), 1.0f / 3.0f);
  EXPECT_EQ(rsqrtf(4.0f), 0.5f);
  EXPECT_EQ(__dp4a(0x01ff0203, 0x01020304, 5), 5 + 1 - 2 + 6 + 12);
  EXPECT_EQ(sizeof(int4) + alignof(int4) + alignof(uchar4) + sizeof(float3) + alignof(double2), 16U + 16 + 4 + 12 + 16);
  const int4 bits = make_int4(1, 2, 3, 4);
  int4 copy{};
  __stcs(&copy, __ldcs(&bits));
  EXPECT_EQ(copy.w, 4);
}

TEST(Narrow, RoundsOncePerOperation) {
  const __nv_bfloat16 x = 1.0f, small = 0x1p-9f;
  EXPECT_EQ(float(x + small), 1.0f);  // a tie, to even
  EXPECT_EQ(float(__float2bfloat16(1.0f + 0x1p-7f)), 1.0f + 0x1p-7f);
  EXPECT_EQ(float(__hfma(x, x, __float2bfloat16(0x1p-7f))), 1.0f + 0x1p-7f);
  const __nv_bfloat162 pair = __floats2bfloat162_rn(1.5f, -2.0f);
  EXPECT_EQ(__low2float(pair) + 10 * __high2float(pair), 1.5f - 20.0f);
  EXPECT_EQ(__bfloat16_as_ushort(__ushort_as_bfloat16(0x3f80)), 0x3f80);
  const half h = __float2half(65504.0f);
  EXPECT_TRUE(std::isinf(__half2float(h + h)));
  EXPECT_EQ(float(half(1.0f) + half(0x1p-11f)), 1.0f);
  half2 sum = __floats2half2_rn(1.0f, 2.0f);
  atomicAdd(&sum, sum);
  EXPECT_EQ(__half22float2(sum).y, 4.0f);
}

TEST(Cublas, MultipliesByColumns) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 2, 3, 1, 1};
  const float two = 2, one = 1, zero = 0;
  std::vector<float> c(4, std::numeric_limits<float>::quiet_NaN());
  cublasHandle_t handle;
  ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  // A is 2 x 3: (1 3 5; 2 4 6). B is 3 x 2: (1 3; 0 1; 2 1).
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, &one, a.data(), 2, b.data(), 3, &zero, c.data(), 2);
  EXPECT_EQ(c, (std::vector<float>{11, 14, 11, 16}));
  // A as the transpose of 3 x 2, by columns: (1 2 3; 4 5 6).
  cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 3, &two, a.data(), 3, b.data(), 3, &one, c.data(), 2);
  EXPECT_EQ(c, (std::vector<float>{11 + 14, 14 + 32, 11 + 16, 16 + 46}));
  std::vector<float> y(2, 1.0f);
  const std::vector<float> x = {1, 9, 0, 9, 2, 9};
  cublasSgemv(handle, CUBLAS_OP_N, 2, 3, &one, a.data(), 2, x.data(), 2, &one, y.data(), 1);
  EXPECT_EQ(y, (std::vector<float>{12, 15}));
  cublasSgemv(handle, CUBLAS_OP_T, 3, 2, &one, a.data(), 3, x.data(), 2, &zero, y.data(), 1);
  EXPECT_EQ(y, (std::vector<float>{7, 16}));
  std::vector<float> batch(2);
  cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 2, &one, a.data(), 1, 2, b.data(), 2, 3, &zero,
                            batch.data(), 1, 1, 2);
  EXPECT_EQ(batch, (std::vector<float>{1, 13}));
  expect_error([&] { cublasLtMatmul(nullptr, 1, 2); }, "not on cuda-host", {"cublasLtMatmul", "cublasSgemm"});
}

TEST(Device, SaysWhatItIs) {
  cudaDeviceProp properties;
  int value = 0;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.major, 9);
  ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlock, 0), cudaSuccess);
  EXPECT_EQ(value, 48 * 1024);
  EXPECT_NE(cudaSetDevice(1), cudaSuccess);
  cudaEvent_t from, to;
  float milliseconds = -1;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  cudaEventRecord(from);
  cudaEventRecord(to);
  cudaEventElapsedTime(&milliseconds, from, to);
  EXPECT_GE(milliseconds, 0);
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  int grid[6] = {1, 2, 3, 4, 5, 6}, block[4] = {};
  cudaMemcpy2D(block, 8, grid + 1, 12, 8, 2, cudaMemcpyDefault);
  EXPECT_EQ(block[2], 5);
}

}  // namespace
}  // namespace assay
