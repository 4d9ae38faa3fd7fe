// Automatic dispatch, pre-warming and reservations with this machine's kernels and devices. Vulkan is required: a
// machine without it fails (Debian: apt install mesa-vulkan-drivers).
#include <gtest/gtest.h>

#include "contract/enforce.hpp"
#include "ops/matmul.hpp"
#include "ops/transpose.hpp"
#include "runtime/vulkan/vulkan_device.hpp"
#include "serve/prewarm.hpp"
#include "serve/reservation.hpp"

namespace assay {
namespace {

using contract::PlannedCall;
using contract::Prewarmed;
using contract::prewarm;

VulkanDevice& vulkan() { return static_cast<VulkanDevice&>(device(Backend::vulkan)); }

struct Product {
  explicit Product(Index size) : n(size), a(elements()), b(elements()), c(elements(), -1) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
      b[i] = static_cast<float>(static_cast<int>(i % 5) - 2);
    }
  }
  std::size_t elements() const { return static_cast<std::size_t>(n * n); }
  ops::MatmulArgs args() {
    return {n, n, n, View<float>{a.data(), {n, n}}, View<float>{b.data(), {n, n}}, View<float>{c.data(), {n, n}}};
  }
  Index n;
  std::vector<float> a, b, c;
};

class Backends : public testing::Test {
 protected:
  void SetUp() override { contract::set_level(contract::Level::full); }  // certificates judge the results
  void TearDown() override { contract::set_level(contract::Level::pre); }
};

TEST_F(Backends, LargeProductsGoToVulkanAndSmallOnesStay) {
  Product small(32), large(33);
  const Dispatched stays = ops::matmul(small.args(), automatic), goes = ops::matmul(large.args(), automatic);
  EXPECT_EQ(stays.kernel->id, "matmul/cpu/dispatch");
  EXPECT_EQ(goes.kernel->id, "matmul/vulkan/tiled64");
  ASSERT_FALSE(goes.passed_over.empty());
  EXPECT_EQ(goes.passed_over[0].backend, Backend::cuda);
  EXPECT_TRUE(vulkan().take_messages().empty());
}

TEST_F(Backends, CopiesOfHostMemoryStayOnTheCpu) {
  std::vector<float> src(300 * 300, 1), dst(src.size());
  EXPECT_EQ(ops::transpose({300, 300, {src.data(), {300, 300}}, {dst.data(), {300, 300}}}, automatic).kernel->backend,
            Backend::cpu);
}

TEST_F(Backends, TheFirstCallAfterPrewarmCompilesNothing) {
  vulkan().forget_pipelines();
  const PlannedCall square{"matmul", {48, 48, 48}}, other{"matmul", {65, 7, 129}}, copy{"transpose", {40, 30}};
  const PlannedCall calls[] = {square, other, square, copy, square};
  const std::uint64_t before = vulkan().pipelines_compiled();
  const Prewarmed made = prewarm(calls, Backend::vulkan);
  EXPECT_TRUE(made.refused.empty());
  ASSERT_EQ(made.prepared.size(), 3U);  // each distinct call once
  EXPECT_EQ(made.prepared[0].call, square);
  EXPECT_EQ(made.prepared[0].kernel->id, "matmul/vulkan/tiled64");
  EXPECT_EQ(made.prepared[2].kernel->id, "transpose/vulkan/tiled32");
  const std::uint64_t prepared = vulkan().pipelines_compiled();
  EXPECT_EQ(prepared, before + 3);  // with and without vector loads, and the transpose
  Product p(48);
  EXPECT_EQ(ops::matmul(p.args(), automatic).kernel->id, "matmul/vulkan/tiled64");
  EXPECT_EQ(vulkan().pipelines_compiled(), prepared) << "the first call compiled a pipeline";
  vulkan().forget_pipelines();
  ops::matmul(p.args(), automatic);
  EXPECT_EQ(vulkan().pipelines_compiled(), prepared + 1) << "a call without prewarm compiles";
}

TEST_F(Backends, PrewarmSaysWhatItRefusedAndWhy) {
  const PlannedCall calls[] = {{"matmul", {2, 2}},    {"matmull", {2, 2, 2}},       {"matmul", {2, 2, 2000000}},
                               {"matmul", {8, 8, 8}}, {"matmul", {8, 8, 8}, {1.0}}, {"gemv", {65536, 65536}}};
  const Prewarmed made = prewarm(calls, Backend::vulkan);
  ASSERT_EQ(made.prepared.size(), 1U);
  EXPECT_EQ(made.prepared[0].call, calls[3]);
  ASSERT_EQ(made.refused.size(), 5U);
  EXPECT_NE(made.refused[0].why.find("2 dims, not 3"), std::string::npos);
  EXPECT_NE(made.refused[1].why.find("matmull"), std::string::npos);
  EXPECT_NE(made.refused[2].why.find("n = 2000000"), std::string::npos);
  EXPECT_NE(made.refused[3].why.find("1 params, not 0"), std::string::npos);
  EXPECT_FALSE(made.refused[4].why.empty());
}

TEST_F(Backends, PrewarmOfAutomaticCallsPreparesWhatWillServeThem) {
  const PlannedCall calls[] = {{"matmul", {8, 8, 8}}, {"matmul", {64, 64, 64}}};
  const Prewarmed made = prewarm(calls, automatic);
  ASSERT_EQ(made.prepared.size(), 2U);
  EXPECT_EQ(made.prepared[0].kernel->id, "matmul/cpu/dispatch");
  EXPECT_EQ(made.prepared[1].kernel->id, "matmul/vulkan/tiled64");
  for (const Backend backend : {Backend::cpu, Backend::cuda_host})
    EXPECT_EQ(prewarm(calls, backend).prepared.size(), 2U) << name(backend);
}

TEST_F(Backends, VulkanReservationsCountAllocations) {
  const std::uint64_t available = vulkan().memory().available;
  EXPECT_THROW(const Reservation r = reserve(vulkan(), available * 2), Unavailable);
  const Reservation held = reserve(vulkan(), 64 << 20);
  const Buffer buffer = vulkan().allocate(48 << 20);
  EXPECT_EQ(held.remaining(), std::uint64_t{16} << 20);
  EXPECT_THROW(vulkan().allocate(17 << 20), Unavailable);
  // A call whose operands exceed the reservation falls back to the CPU.
  Product p(1200);
  const Dispatched d = ops::matmul(p.args(), automatic);
  EXPECT_EQ(d.kernel->backend, Backend::cpu);
  EXPECT_TRUE(d.fell_back());
  EXPECT_EQ(switched_off(Backend::vulkan), std::nullopt);
}

TEST_F(Backends, EveryDeviceAnswersForItsMemory) {
  for (const Backend backend : {Backend::cpu, Backend::cuda_host, Backend::vulkan}) {
    const MemoryInfo memory = device(backend).memory();
    EXPECT_GT(memory.available, 0U) << name(backend);
    EXPECT_GE(memory.total, memory.available) << name(backend);
  }
}

}  // namespace
}  // namespace assay
