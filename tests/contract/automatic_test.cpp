// Contracts of dispatched calls: host operands are copied, device operands are used in place, and conditions that read
// elements evaluate them on the device's copy.
#include <gtest/gtest.h>

#include <vector>

#include "../runtime/far_device.hpp"
#include "contract/enforce.hpp"
#include "core/errors.hpp"
#include "ops/embedding.hpp"

namespace assay::contract::automatic_test {
namespace {

const DeviceRegistration far_device(Backend::vulkan, []() -> std::unique_ptr<Device> {
  return std::make_unique<far::FarDevice>(Backend::vulkan);
});
const KernelRegistration far_kernel(Kernel{.id = "matmul/vulkan/far",
                                           .summary = "of this test",
                                           .run = &run_typed<ops::MatmulArgs, &far::multiply>,
                                           .automatic_above = -1});

void writes_nothing(const ops::EmbeddingArgs&, Device&) {}
const KernelRegistration idle_kernel(Kernel{
    .id = "embedding/cpu/idle", .summary = "of this test", .run = &run_typed<ops::EmbeddingArgs, &writes_nothing>});

class AutomaticContract : public testing::Test {
 protected:
  void SetUp() override { set_level(Level::full); }
  void TearDown() override {
    set_level(Level::pre);
    far::behaviour(Backend::vulkan).wrong = false;
  }
  ops::MatmulArgs args(float* x, float* y, float* z) {
    return {2, 3, 2, View<float>{x, {2, 3}}, View<float>{y, {3, 2}}, View<float>{z, {2, 2}}};
  }
  std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 2, 3, 4, 5, 6}, c = std::vector<float>(4, -1);
  const std::vector<float> right{22, 28, 49, 64};
};

TEST_F(AutomaticContract, OperandsOnTheHostAreCopied) {
  const ops::MatmulArgs call = args(a.data(), b.data(), c.data());
  EXPECT_EQ(ops::matmul(call, automatic).kernel->id, "matmul/vulkan/far");
  EXPECT_EQ(c, right);
  far::behaviour(Backend::vulkan).wrong = true;
  EXPECT_THROW(ops::matmul(call, automatic), ContractViolation);
}

TEST_F(AutomaticContract, ConditionsReadElementsOnTheHost) {
  const std::vector<float> table(6, 1);
  std::vector<float> y(4);
  std::vector<std::int32_t> ids{2, 1};
  const ops::EmbeddingArgs call{
      2, 3, 2, {ids.data(), {2}}, View<const float>{table.data(), {3, 2}}, View<float>{y.data(), {2, 2}}};
  set_level(Level::pre);
  EXPECT_NO_THROW(ops::embedding(call, automatic));
  ids[1] = 3;
  EXPECT_THROW(ops::embedding(call, automatic), ContractViolation);
}

TEST_F(AutomaticContract, OperandsOnADeviceStayThere) {
  Device& there = device(Backend::vulkan);
  const Buffer x = there.allocate(24), y = there.allocate(24), z = there.allocate(16);
  there.upload(x.address(), a.data(), 24), there.upload(y.address(), b.data(), 24);
  const ops::MatmulArgs call =
      args(static_cast<float*>(x.address()), static_cast<float*>(y.address()), static_cast<float*>(z.address()));
  EXPECT_EQ(ops::matmul(call, automatic).kernel->id, "matmul/vulkan/far");
  there.download(c.data(), z.address(), 16);
  EXPECT_EQ(c, right);
  far::behaviour(Backend::vulkan).wrong = true;
  EXPECT_THROW(ops::matmul(call, automatic), ContractViolation);
}

}  // namespace
}  // namespace assay::contract::automatic_test
