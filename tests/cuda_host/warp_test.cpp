// Shuffles, votes and their masks.
#include <vector>

#include "tests/cuda_host/host.hpp"

namespace assay {
namespace {

enum class Kind { indexed, up, down, exclusive };

__global__ void shuffle_once(Kind kind, unsigned mask, int amount, int width, int* out) {
  const int mine = 100 + static_cast<int>(threadIdx.x);
  const unsigned delta = static_cast<unsigned>(amount);
  int& result = out[threadIdx.x];
  switch (kind) {
    case Kind::indexed: result = __shfl_sync(mask, mine, amount, width); break;
    case Kind::up: result = __shfl_up_sync(mask, mine, delta, width); break;
    case Kind::down: result = __shfl_down_sync(mask, mine, delta, width); break;
    case Kind::exclusive: result = __shfl_xor_sync(mask, mine, amount, width); break;
  }
}

std::vector<int> shuffled(Kind kind, int amount, int width = 32, unsigned threads = 32) {
  std::vector<int> out(threads);
  const unsigned mask = threads >= 32 ? 0xffffffffU : (1U << threads) - 1;
  run_here(&shuffle_once, {dim3(1), dim3(threads)}, kind, mask, amount, width, out.data());
  return out;
}

TEST(Shuffle, GivesWhatTheProgrammingGuideSays) {
  for (int width : {32, 16, 8})
    for (int l = 0; l < 32; ++l) {
      const int first = l / width * width;
      const auto at = static_cast<std::size_t>(l);
      EXPECT_EQ(shuffled(Kind::indexed, 5, width)[at], 100 + first + 5 % width);
      EXPECT_EQ(shuffled(Kind::up, 3, width)[at], 100 + (l - first >= 3 ? l - 3 : l));
      EXPECT_EQ(shuffled(Kind::down, 3, width)[at], 100 + (l - first + 3 < width ? l + 3 : l));
      EXPECT_EQ(shuffled(Kind::exclusive, 4, width)[at], 100 + (l ^ 4));
    }
}

TEST(Shuffle, OfAPartialWarpIsUndefinedOnlyBeyondItsLanes) {
  const std::vector<int> out = shuffled(Kind::down, 4, 32, 10);
  for (int l = 0; l < 6; ++l) EXPECT_EQ(out[static_cast<std::size_t>(l)], 104 + l);
  for (int l = 6; l < 10; ++l) EXPECT_NE(out[static_cast<std::size_t>(l)], 104 + l);
}

/// Sums over the lanes of every warp, repeatedly: warps and rounds must not mix.
__global__ void sums(int* out, int rounds) {
  int sum = static_cast<int>(threadIdx.x);
  for (int r = 0; r < rounds; ++r) {
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
    sum %= 1000;
  }
  out[threadIdx.x] = sum;
}

TEST(Shuffle, WarpsAreIndependent) {
  std::vector<int> out(96);
  run_here(&sums, {dim3(1), dim3(96)}, out.data(), 3);
  for (int w = 0; w < 3; ++w) {
    int sum = 0;
    for (int l = 0; l < 32; ++l) sum += 32 * w + l;
    for (int r = 1; r < 3; ++r) sum = sum % 1000 * 32;
    for (int l = 0; l < 32; ++l) EXPECT_EQ(out[static_cast<std::size_t>(32 * w + l)], sum % 1000);
  }
}

__global__ void votes(unsigned* out) {
  const unsigned mask = threadIdx.x < 12 ? 0xfffU : 0xfffff000U;  // two groups of one warp
  out[threadIdx.x] = __ballot_sync(mask, threadIdx.x % 3 == 0);
  out[32 + threadIdx.x] = __any_sync(mask, threadIdx.x == 2) ? 1 : 0;
  out[64 + threadIdx.x] = __all_sync(mask, threadIdx.x >= 12) ? 1 : 0;
}

TEST(Vote, OfDivergedHalvesOfAWarp) {
  std::vector<unsigned> out(96);
  run_here(&votes, {dim3(1), dim3(32)}, out.data());
  for (std::size_t l = 0; l < 32; ++l) {
    EXPECT_EQ(out[l], 0x49249249U & (l < 12 ? 0xfffU : 0xfffff000U));
    EXPECT_EQ(out[32 + l], l < 12 ? 1U : 0U);
    EXPECT_EQ(out[64 + l], l < 12 ? 0U : 1U);
  }
}

TEST(Mask, MustNotNameLanesThatTheBlockLacks) {
  int out[48];
  const auto shuffle = [&](unsigned threads, unsigned mask) {
    run_here(&shuffle_once, {dim3(1), dim3(threads)}, Kind::down, mask, 1, 32, out);
  };
  expect_error([&] { shuffle(17, 0xffffffffU); }, "warp mask", {"last warp", "warp_test.cpp:"});
  expect_error([&] { shuffle(48, 0xffffffffU); }, "warp mask", {"last warp"});
  expect_error([&] { shuffle(32, 0x7fffffffU); }, "warp mask", {"does not name the lane"});
  shuffle(17, 0x1ffffU);
}

__global__ void half_exits(int* out) {
  if (threadIdx.x >= 16) return;
  out[threadIdx.x] = __shfl_down_sync(0xffffffffU, 1, 1);
}
__global__ void different_masks(int* out) {
  out[threadIdx.x] = __shfl_down_sync(threadIdx.x == 0 ? 0x3U : 0xffffffffU, 1, 1);
}
__global__ void barrier_against_shuffle(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_down_sync(0xffffffffU, 1, 1);
  __syncthreads();
}

TEST(Mask, LanesThatDoNotComeAreReported) {
  int out[32];
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    cuda_host::set_seed(seed);
    try {
      run_here(&half_exits, {dim3(1), dim3(32)}, out);
      ADD_FAILURE() << "lanes that exited were not missed";
    } catch (const DeviceError& error) {
      // Detected at once, or when no thread can run.
      EXPECT_TRUE(error.code == "warp mask" || error.code == "warp divergence") << error.what();
    }
    expect_error([&] { run_here(&different_masks, {dim3(1), dim3(32)}, out); }, "warp divergence");
    expect_error(
        [&] {
          run_here(&barrier_against_shuffle, {dim3(1), dim3(32)}, out);
        },
        "warp divergence", {"threads 0-15 wait for the other lanes", "threads 16-31 wait at the barrier"});
  }
}

}  // namespace
}  // namespace assay
