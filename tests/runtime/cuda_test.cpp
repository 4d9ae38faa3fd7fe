// CudaDevice on a GPU: memory, reservations, resident operands, and preparing.
#include <gtest/gtest.h>

#include "contract/enforce.hpp"
#include "ops/matmul.hpp"
#include "runtime/device.hpp"
#include "serve/prewarm.hpp"
#include "serve/reservation.hpp"

namespace assay {
namespace {

using contract::PlannedCall;

TEST(CudaDevice, MemoryIsAskedFromTheDeviceAndReserved) {
  Device& cuda = device(Backend::cuda);
  const MemoryInfo before = cuda.memory();
  ASSERT_GT(before.available, std::uint64_t{1} << 30);
  EXPECT_GE(before.total, before.available);
  EXPECT_THROW(const Reservation r = reserve(cuda, before.total + 1), Unavailable);
  const Reservation held = reserve(cuda, 512 << 20);
  const Buffer buffer = cuda.allocate(256 << 20);
  EXPECT_LE(cuda.memory().available, before.available - (256 << 20));
  EXPECT_EQ(held.remaining(), std::uint64_t{256} << 20);
  EXPECT_THROW(cuda.allocate(257 << 20), Unavailable);
}

TEST(CudaDevice, KnowsItsOwnAddresses) {
  Device& cuda = device(Backend::cuda);
  const Buffer buffer = cuda.allocate(1024);
  const int on_the_host = 0;
  EXPECT_TRUE(cuda.owns(buffer.address()));
  EXPECT_TRUE(cuda.owns(static_cast<std::byte*>(buffer.address()) + 1000));
  EXPECT_FALSE(cuda.owns(&on_the_host));
  cuda.synchronize();  // a query about a host address leaves no error behind
}

TEST(CudaDevice, PreparingRunsNothingAndTakesThoseItCan) {
  const PlannedCall calls[] = {{"matmul", {512, 512, 512}},
                               {"gemv", {64, 64}},
                               {"transpose", {40, 30}},
                               {"matmul", {512, 512, 512}},
                               {"matmul", {1, 2}}};
  const contract::Prewarmed made = contract::prewarm(calls, Backend::cuda);
  ASSERT_EQ(made.prepared.size(), 3U);
  EXPECT_EQ(made.prepared[0].kernel->id, "matmul/cuda/register_tiled");
  EXPECT_EQ(made.refused.size(), 1U);
  device(Backend::cuda).synchronize();
}

TEST(CudaDevice, ServesAutomaticCallsFirstFromTheHostAndWhereOperandsLie) {
  contract::set_level(contract::Level::full);
  std::vector<float> a(33 * 40, 2), b(40 * 17, 3), c(33 * 17);
  const Dispatched from_host = ops::matmul(
      {33, 40, 17, View<float>{a.data(), {33, 40}}, View<float>{b.data(), {40, 17}}, View<float>{c.data(), {33, 17}}},
      automatic);
  EXPECT_EQ(from_host.kernel->id, "matmul/cuda/register_tiled");
  EXPECT_EQ(c, std::vector<float>(c.size(), 240));
  Device& cuda = device(Backend::cuda);
  const Buffer da = cuda.allocate(a.size() * 4), db = cuda.allocate(b.size() * 4), dc = cuda.allocate(c.size() * 4);
  cuda.upload(da.address(), a.data(), da.bytes());
  cuda.upload(db.address(), b.data(), db.bytes());
  const LayerPass pass;
  const auto at = [](const Buffer& buffer) { return static_cast<float*>(buffer.address()); };
  const Dispatched there = ops::matmul(
      {33, 40, 17, View<float>{at(da), {33, 40}}, View<float>{at(db), {40, 17}}, View<float>{at(dc), {33, 17}}},
      automatic);
  EXPECT_EQ(there.kernel->backend, Backend::cuda);
  EXPECT_TRUE(there.passed_over.empty());
}

}  // namespace
}  // namespace assay
