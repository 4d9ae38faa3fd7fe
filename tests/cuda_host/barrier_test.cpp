// Order of threads and blocks, barriers, limits of launches.
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "tests/cuda_host/host.hpp"

namespace assay {
namespace {

/// order[i]: the i-th thread to run.
__global__ void record_order(int* order, int* next) {
  order[atomicAdd(next, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

std::vector<int> order_of(std::uint64_t seed) {
  std::vector<int> order(4 * 64);
  int next = 0;
  cuda_host::set_seed(seed);
  run_here(&record_order, {dim3(4), dim3(64)}, order.data(), &next);
  EXPECT_EQ(next, 256);
  return order;
}

TEST(Order, IsAFunctionOfTheSeedAndCoversEveryThread) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<int> order = order_of(seed);
    EXPECT_EQ(order, order_of(seed));
    orders.insert(order);
    std::ranges::sort(order);
    for (int i = 0; i < 256; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(orders.size(), 20U);
}

TEST(Order, OfBlocksIsDrawnToo) {
  std::set<int> first;
  for (std::uint64_t seed = 0; seed < 30; ++seed) first.insert(order_of(seed)[0] / 64);
  EXPECT_EQ(first.size(), 4U);
}

__global__ void indices(uint3* thread, uint3* block) {
  const unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned at = b * blockDim.x * blockDim.y * blockDim.z + t;
  __syncthreads();  // indices must survive a switch
  thread[at] = threadIdx;
  block[at] = blockIdx;
}

TEST(Launch, EveryThreadHasItsIndices) {
  std::vector<uint3> thread(3 * 2 * 2 * 4 * 3 * 2), block(thread.size());
  run_here(&indices, {dim3(3, 2, 2), dim3(4, 3, 2)}, thread.data(), block.data());
  for (unsigned i = 0; i < thread.size(); ++i) {
    EXPECT_EQ(thread[i].x + 4 * (thread[i].y + 3 * thread[i].z), i % 24);
    EXPECT_EQ(block[i].x + 3 * (block[i].y + 2 * block[i].z), i / 24);
  }
}

/// Passes values to the neighbour through shared memory, `rounds` times.
__global__ void rotate(int* values, int rounds) {
  ASSAY_SHARED(int, line, [96]);
  const unsigned t = threadIdx.x, next = (t + 1) % blockDim.x;
  int mine = values[t];
  for (int r = 0; r < rounds; ++r) {
    line[t] = mine;
    __syncthreads();
    mine = line[next];
    __syncthreads();
  }
  values[t] = mine;
}

TEST(Barrier, KeepsPhasesApart) {
  for (unsigned threads : {1U, 31U, 32U, 33U, 96U}) {
    std::vector<int> values(threads);
    std::iota(values.begin(), values.end(), 0);
    run_here(&rotate, {dim3(1), dim3(threads)}, values.data(), 7);
    for (unsigned t = 0; t < threads; ++t) EXPECT_EQ(values[t], static_cast<int>((t + 7) % threads));
  }
}

__global__ void early_exit(unsigned limit) {
  if (threadIdx.x >= limit) return;
  __syncthreads();
}
__global__ void two_barriers() {
  if (threadIdx.x < 20) __syncthreads();
  else __syncthreads();
}

TEST(Barrier, ThreadsThatExitedAreReportedWithTheirBlock) {
  expect_error(
      [] {
        run_here(&early_exit, {dim3(3), dim3(40)}, 17U);
      },
      "barrier divergence",
      {"block (", "threads 0-16 wait at the barrier barrier_test.cpp:", "threads 17-39 have exited"});
  run_here(&early_exit, {dim3(3), dim3(40)}, 40U);  // usable after a failure
  run_here(&early_exit, {dim3(3), dim3(40)}, 0U);
}

TEST(Barrier, TwoBarriersAreNotOne) {
  expect_error(
      [] {
        run_here(&two_barriers, {dim3(1), dim3(40)});
      },
      "barrier divergence", {"threads 0-19 wait", "threads 20-39 wait"});
}

__global__ void nothing() {}

TEST(Launch, WhatADeviceRefusesIsRefused) {
  const std::string code = "cudaErrorInvalidConfiguration";
  expect_error([] { run_here(&nothing, {dim3(1), dim3(1025)}); }, code);
  expect_error([] { run_here(&nothing, {dim3(1), dim3(0)}); }, code);
  expect_error([] { run_here(&nothing, {dim3(1), dim3(1, 1, 65)}); }, code);
  expect_error([] { run_here(&nothing, {dim3(0), dim3(32)}); }, code);
  expect_error([] { run_here(&nothing, {dim3(1, 65536), dim3(32)}); }, code);
  expect_error([] { run_here(&nothing, {dim3(1), dim3(32), 228 * 1024}); }, "cudaErrorInvalidValue");
  run_here(&nothing, {dim3(2, 2, 2), dim3(1024), 227 * 1024});
}

}  // namespace
}  // namespace assay
