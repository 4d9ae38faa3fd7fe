// Shared memory and asynchronous copies.
#include <cuda_pipeline.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "tests/cuda_host/host.hpp"

namespace assay {
namespace {

/// Copies the initial contents of a block's shared memory, then fills it.
__global__ void peek(float* out) {
  ASSAY_SHARED(float, memory, [64]);
  float* const dynamic = dynamic_shared<float>();
  const unsigned t = threadIdx.x;
  out[blockIdx.x * 128 + t] = memory[t];
  out[blockIdx.x * 128 + 64 + t] = dynamic[t];
  memory[t] = dynamic[t] = 1.0f;
}

TEST(SharedMemory, HoldsGarbageAtTheStartOfEveryBlock) {
  std::set<float> finite;
  int nans = 0;
  for (int launches = 0; launches < 10; ++launches) {
    std::vector<float> out(8 * 128, 1.0f);
    run_here(&peek, {dim3(8), dim3(64), 64 * sizeof(float)}, out.data());
    for (float x : out) {
      EXPECT_NE(x, 1.0f);
      if (std::isnan(x)) ++nans;
      else finite.insert(x);
    }
  }
  EXPECT_EQ(nans, 10 * 8 * 128 / 2);
  EXPECT_GT(finite.size(), 100U);
}

/// Copies through shared memory; without the wait, some elements have not arrived yet.
__global__ void copy_through(const float* in, float* out, bool waits) {
  ASSAY_SHARED(float, stages, [2][256]);
  const unsigned t = threadIdx.x * 4;
  for (unsigned s = 0; s < 2; ++s) {
    __pipeline_memcpy_async(&stages[s][t], in + 256 * s + t, 16, s == 1 && t == 252 ? 8 : 0);
    __pipeline_commit();
  }
  if (waits) __pipeline_wait_prior(1);
  __syncthreads();
  for (unsigned i = 0; i < 4; ++i) out[t + i] = stages[0][t + i];
  if (waits) __pipeline_wait_prior(0);
  __syncthreads();
  for (unsigned i = 0; i < 4; ++i) out[256 + t + i] = stages[1][t + i];
}

struct alignas(16) Line {
  float at[512];
};

TEST(AsyncCopy, ArrivesByTheEndOfTheWait) {
  Line in, out;
  for (int i = 0; i < 512; ++i) in.at[i] = static_cast<float>(i);
  for (int launches = 0; launches < 20; ++launches) {
    run_here(&copy_through, {dim3(1), dim3(64)}, in.at, out.at, true);
    EXPECT_TRUE(std::equal(in.at, in.at + 510, out.at));
    EXPECT_EQ(out.at[510], 0.0f);  // zero-filled
    EXPECT_EQ(out.at[511], 0.0f);
  }
}

TEST(AsyncCopy, MayNotHaveArrivedWithoutTheWait) {
  Line in, out;
  for (int i = 0; i < 512; ++i) in.at[i] = static_cast<float>(i);
  for (int launches = 0; launches < 20; ++launches) {
    run_here(&copy_through, {dim3(1), dim3(64)}, in.at, out.at, false);
    int wrong = 0;
    for (int i = 0; i < 512; ++i) wrong += out.at[i] != in.at[i];
    EXPECT_GT(wrong, 64);
    EXPECT_LT(wrong, 448);  // and some have arrived: overwriting a stage too early must show as well
  }
}

TEST(AsyncCopy, NeedsAlignedAddresses) {
  Line in, out;
  expect_error(
      [&] {
        run_here(&copy_through, {dim3(1), dim3(32)}, in.at + 1, out.at, true);
      },
      "misaligned address", {"memory_test.cpp:", "thread ("});
}

#if defined(__SANITIZE_ADDRESS__)
__global__ void past_static(float* out, unsigned at) {
  ASSAY_SHARED(float, memory, [64]);
  memory[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = memory[threadIdx.x + at];
}
__global__ void past_plain(float* out, unsigned at) {
  __shared__ float memory[64];
  memory[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = memory[threadIdx.x + at];
}
__global__ void past_dynamic(float* out, unsigned at) {
  float* const memory = dynamic_shared<float>();
  memory[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = memory[threadIdx.x + at];
}

#endif

TEST(SharedMemoryDeathTest, TheAddressSanitizerSeesTheEndOfEveryArray) {
#if defined(__SANITIZE_ADDRESS__)
  std::vector<float> out(64);
  // For an array of known type, the undefined-behaviour sanitizer detects the index first.
  constexpr const char* kStatic = "global-buffer-overflow|index [0-9]+ out of bounds";
  for (const unsigned at : {1U, 3U}) {
    const LaunchShape shape{dim3(1), dim3(64), 64 * sizeof(float)};
    EXPECT_DEATH(run_here(&past_static, shape, out.data(), at), kStatic);
    EXPECT_DEATH(run_here(&past_plain, shape, out.data(), at), kStatic);
    EXPECT_DEATH(run_here(&past_dynamic, shape, out.data(), at), "heap-buffer-overflow");
  }
  EXPECT_DEATH(run_here(&past_static, {dim3(1), dim3(65)}, out.data(), 0U), kStatic);
#else
  GTEST_SKIP() << "needs the address sanitizer: preset asan-ubsan";
#endif
}

}  // namespace
}  // namespace assay
