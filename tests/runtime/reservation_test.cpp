// Reservations: refusals, accounting, and their end with the scope.
#include "serve/reservation.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "far_device.hpp"

namespace assay {
namespace {

std::string why(const auto& call) {
  try {
    call();
  } catch (const Unavailable& e) {
    return e.what();
  }
  return "nothing was thrown";
}

class ReservationTest : public testing::Test {
 protected:
  void SetUp() override { far::behaviour(Backend::vulkan).memory = 1000; }
  far::FarDevice device{Backend::vulkan};
};

TEST_F(ReservationTest, RefusesWhatDoesNotFitNamingRequestedAndAvailable) {
  EXPECT_EQ(why([&] { const Reservation r = reserve(device, 1001); }),
            "vulkan memory is unavailable: 1001 bytes requested, 1000 available");
  const Reservation all = reserve(device, 1000);
  EXPECT_EQ(all.remaining(), 1000U);
}

TEST_F(ReservationTest, AllocationsInsideCountAgainstItAndComeBackWhenFreed) {
  const Reservation held = reserve(device, 300);
  Buffer first = device.allocate(200);
  EXPECT_EQ(held.remaining(), 100U);
  EXPECT_EQ(why([&] { device.allocate(101); }),
            "vulkan memory is unavailable: 101 bytes requested, 100 available of a reservation of 300 bytes");
  const Buffer second = device.allocate(100);
  EXPECT_EQ(held.remaining(), 0U);
  first = {};
  EXPECT_EQ(held.remaining(), 200U);
}

TEST_F(ReservationTest, NobodyElseGetsWhatItHolds) {
  const Reservation held = reserve(device, 700);
  std::thread([&] {
    EXPECT_EQ(why([&] { device.allocate(301); }),
              "vulkan memory is unavailable: 301 bytes requested, 300 available: 700 of 1000 are reserved");
    EXPECT_EQ(why([&] { const Reservation r = reserve(device, 301); }),
              "vulkan memory is unavailable: 301 bytes requested, 300 available: 700 of 1000 are reserved");
    const Buffer beside = device.allocate(300);
    EXPECT_EQ(held.remaining(), 700U);
  }).join();
  const Buffer inside = device.allocate(700);
  EXPECT_EQ(held.remaining(), 0U);
}

TEST_F(ReservationTest, EndsWithItsScope) {
  Buffer kept;
  {
    const Reservation held = reserve(device, 900);
    kept = device.allocate(400);
  }
  EXPECT_EQ(device.allocated, 400U);
  const Reservation next = reserve(device, 600);
  EXPECT_EQ(next.remaining(), 600U);
  kept = {};  // charged to the ended reservation, so not credited to this one
  EXPECT_EQ(next.remaining(), 600U);
}

TEST_F(ReservationTest, OneInsideAnotherIsTakenOutOfIt) {
  const Reservation outer = reserve(device, 500);
  Buffer kept;
  {
    EXPECT_NE(why([&] { const Reservation r = reserve(device, 501); }).find("of a reservation of 500"),
              std::string::npos);
    const Reservation inner = reserve(device, 300);
    EXPECT_EQ(outer.remaining(), 200U);
    kept = device.allocate(100);
    EXPECT_EQ(inner.remaining(), 200U);
    EXPECT_EQ(outer.remaining(), 200U);
  }
  EXPECT_EQ(outer.remaining(), 400U);  // the surviving buffer is charged to it
  kept = {};
  EXPECT_EQ(outer.remaining(), 500U);
}

TEST_F(ReservationTest, EndingInAnyOrderLeavesNothingPromised) {
  std::optional<Reservation> first, second, third;
  first.emplace(device, 500);
  second.emplace(device, 300);
  third.emplace(device, 100);
  Buffer buffer = device.allocate(50);
  second.reset();
  first.reset();
  std::thread([&] { third.reset(); }).join();
  EXPECT_EQ(why([&] { const Reservation r = reserve(device, 951); }),
            "vulkan memory is unavailable: 951 bytes requested, 950 available");
  buffer = {};
  const Reservation all = reserve(device, 1000);
  EXPECT_EQ(all.remaining(), 1000U);
}

TEST_F(ReservationTest, AnAllocationThatFailsIsNotCharged) {
  const Reservation held = reserve(device, 1000);
  far::behaviour(Backend::vulkan).memory = 10;  // another process took it
  EXPECT_THROW(device.allocate(500), Unavailable);
  EXPECT_EQ(held.remaining(), 1000U);
}

TEST(HostReservation, IsAskedFromTheOperatingSystemAndSharedByBothHostBackEnds) {
  Device &cpu = device(Backend::cpu), &cuda_host = device(Backend::cuda_host);
  const std::uint64_t available = cpu.memory().available;
  ASSERT_GT(available, std::uint64_t{1} << 28);
  EXPECT_GE(cpu.memory().total, available);
  EXPECT_THROW(const Reservation r = reserve(cpu, std::uint64_t{1} << 60), Unavailable);
  const Reservation half = reserve(cpu, available / 2);
  std::thread([&] {
    EXPECT_THROW(const Reservation r = reserve(cuda_host, available), Unavailable);
    EXPECT_THROW(const Reservation r = reserve(cpu, available), Unavailable);
  }).join();
  const Buffer inside = cpu.allocate(1 << 20);
  EXPECT_EQ(half.remaining(), available / 2 - (1 << 20));
}

TEST(HostMemory, AnAllocationBeyondWhatThereIsIsRefusedNotGranted) {
  Device& cpu = device(Backend::cpu);
  EXPECT_NE(why([&] { cpu.allocate(cpu.memory().total * 2); }).find("available"), std::string::npos);
}

/// Returns the bytes of memory that this process holds.
std::uint64_t resident() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return 1024 * std::stoull(line.substr(6));
  return 0;
}

TEST(HostMemory, WhatIsAllocatedIsTakenAtOnce) {
  constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;
  const std::uint64_t before = resident();
  ASSERT_GT(before, 0U);
  const Buffer untouched = device(Backend::cpu).allocate(kBytes);
  EXPECT_GE(resident(), before + kBytes / 10 * 9);
}

}  // namespace
}  // namespace assay
