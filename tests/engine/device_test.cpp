// The host as a device: its memory, and unavailable back ends.
#include "runtime/device.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "tests/engine/absent.hpp"

namespace assay::device_test {
namespace {

TEST(HostDevice, MemoryIsAlignedCopiedAndFreedByItsOwner) {
  for (const Backend backend : {Backend::cpu, Backend::cuda_host}) {
    Device& host = device(backend);
    EXPECT_EQ(host.backend(), backend);
    EXPECT_TRUE(host.host_visible());
    EXPECT_FALSE(host.description().empty());
    EXPECT_GT(host.memory().available, 0U);
    EXPECT_LE(host.memory().available, host.memory().total);
    const float sent[3] = {1, 2, 3};
    float got[3] = {};
    Buffer first = host.allocate(sizeof sent);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.address()) % 64, 0U);
    host.upload(first.address(), sent, sizeof sent);
    const Buffer owner = std::move(first);
    host.download(got, owner.address(), owner.bytes());
    host.synchronize();
    EXPECT_EQ(got[2], 3);
    EXPECT_TRUE(host.take_messages().empty());
  }
}

TEST(HostDevice, NoBytesAreNoMemoryAndTooManyAreUnavailable) {
  Device& host = device(Backend::cpu);
  EXPECT_EQ(host.allocate(0).address(), nullptr);
  EXPECT_THROW(host.allocate(std::size_t{1} << 60), Unavailable);
}

TEST(Devices, NamesThatAreNoneAndBackEndsThatAreNotHere) {
  for (const Backend backend : kBackends) EXPECT_EQ(backend_from(name(backend)), backend);
  EXPECT_THROW(backend_from("gpu"), InputError);
  const Backend absent = absent_backend();
  for (int request = 0; request < 2; ++request) {
    try {
      device(absent);
      FAIL() << "it is there";
    } catch (const Unavailable& e) {
      EXPECT_EQ(e.why, "the test took it away") << "the reason is given again on every request";
    }
  }
}

}  // namespace
}  // namespace assay::device_test
