// VulkanDevice: memory, dispatch, limits, and errors for missing or wrong parts.
#include "runtime/vulkan/vulkan_device.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "shaders/test_endless.hpp"
#include "shaders/test_fill.hpp"

namespace assay {
namespace {

#if defined(__SANITIZE_ADDRESS__)
/// The loader unloads layers and drivers with the last instance, and leaks in unloaded libraries have no name. These
/// stay loaded, so that ci/lsan.supp can tell their leaks from ours.
[[maybe_unused]] const bool kStay = [] {
  for (const char* library : {"libvulkan_lvp.so", "libVkLayer_khronos_validation.so"})
    dlopen(library, RTLD_NOW | RTLD_NODELETE);
  return true;
}();
#endif

struct FillPush {
  std::uint32_t count, add;
};

VulkanOptions options(bool staging = false) {
  return {.device = {}, .validation = true, .staging = staging, .work_limit_seconds = 30};
}

/// target[i] = source[i] * factor + add, for i < count.
void fill(VulkanDevice& device, const Buffer& source, const Buffer& target, FillPush push, std::uint32_t factor,
          std::uint32_t groups = 1) {
  const std::array bindings{device.bind(source.address(), source.bytes()),
                            device.bind(target.address(), target.bytes())};
  const std::array specialization{factor};
  device.dispatch({.name = "test_fill",
                   .module = vulkan::shaders::test_fill.module,
                   .specialization = specialization,
                   .bindings = bindings,
                   .push = std::as_bytes(std::span(&push, 1)),
                   .groups = {groups, 1, 1}});
}

std::string why(const auto& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(VulkanDevice, CopiesRoundTripAtAnyOffsetThroughStagingAndWithoutIt) {
  for (const bool staging : {false, true}) {
    VulkanDevice device(options(staging));
    std::vector<std::uint32_t> sent(9'000'001), got(sent.size());
    std::iota(sent.begin(), sent.end(), 7U);
    const Buffer buffer = device.allocate(4 * sent.size());
    device.upload(buffer.address(), sent.data(), 4 * sent.size());
    device.download(got.data(), buffer.address(), 4 * sent.size());
    EXPECT_EQ(sent, got);
    std::uint32_t one = 0;
    device.download(&one, static_cast<std::byte*>(buffer.address()) + 4 * 4'194'305, 4);
    EXPECT_EQ(one, sent[4'194'305]);
    EXPECT_TRUE(device.take_messages().empty());
  }
}

TEST(VulkanDevice, DependentDispatchesRunInOrderPastTheLengthOfABatch) {
  VulkanDevice device(options());
  std::array buffers{device.allocate(4 * 64), device.allocate(4 * 64)};
  const std::vector<std::uint32_t> zeros(64);
  device.upload(buffers[0].address(), zeros.data(), 4 * 64);
  std::uint32_t expected = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    fill(device, buffers[i % 2], buffers[(i + 1) % 2], {64, i}, 3);
    expected = expected * 3 + i;
  }
  device.synchronize();
  std::vector<std::uint32_t> got(64);
  device.download(got.data(), buffers[0].address(), 4 * 64);
  EXPECT_EQ(got, std::vector<std::uint32_t>(64, expected));
  EXPECT_EQ(device.take_messages(), std::vector<std::string>{});
}

TEST(VulkanDevice, PipelinesAreToldApartBySpecialization) {
  VulkanDevice device(options());
  const Buffer buffer = device.allocate(4), other = device.allocate(4);
  const std::uint32_t one = 1;
  std::uint32_t got = 0;
  device.upload(buffer.address(), &one, 4);
  fill(device, buffer, other, {1, 0}, 5);
  fill(device, other, buffer, {1, 0}, 7);
  device.download(&got, buffer.address(), 4);
  EXPECT_EQ(got, 35U);
  device.forget_pipelines();
  fill(device, buffer, other, {1, 0}, 2);
  device.download(&got, other.address(), 4);
  EXPECT_EQ(got, 70U);
}

TEST(VulkanDevice, MessagesOfTheValidationLayerAreCollectedOnce) {
  VulkanDevice device(options());
  const std::array<StorageBinding, 2> none{};
  device.dispatch(
      {.name = "test_fill", .module = vulkan::shaders::test_fill.module, .bindings = none});  // no push range
  EXPECT_FALSE(device.take_messages().empty());
  EXPECT_TRUE(device.take_messages().empty());
}

TEST(VulkanDevice, RefusesWhatDoesNotFitWithTheReason) {
  VulkanDevice device(options());
  EXPECT_THROW(device.allocate(std::size_t{1} << 50), Unavailable);
  EXPECT_NE(why([&] { device.allocate(std::size_t{1} << 50); }).find("free"), std::string::npos);
  const Buffer buffer = device.allocate(256);
  EXPECT_THROW(fill(device, buffer, buffer, {64, 0}, 1, 0xffff'ffff), Unavailable);
  EXPECT_NE(why([&] { fill(device, buffer, buffer, {64, 0}, 1, 0xffff'ffff); }).find("workgroups"), std::string::npos);
  EXPECT_NO_THROW(fill(device, buffer, buffer, {64, 0}, 1, 0));
}

TEST(VulkanDevice, AddressesOutsideALiveAllocationAreReported) {
  VulkanDevice device(options());
  Buffer buffer = device.allocate(256);
  auto* const address = static_cast<std::byte*>(buffer.address());
  EXPECT_THROW(device.bind(address, 257), DeviceError);
  EXPECT_THROW(device.bind(address + 253, 4), DeviceError);
  EXPECT_THROW(device.bind(address + 2, 4), DeviceError);
  EXPECT_EQ(device.bind(address + 252, 4).first, 63U);
  EXPECT_EQ(device.bind(nullptr, 0).allocation, nullptr);
  const int on_the_host = 0;
  EXPECT_THROW(device.bind(&on_the_host, 4), DeviceError);
  buffer = {};
  EXPECT_THROW(device.bind(address, 4), DeviceError);
  const Buffer next = device.allocate(256);
  EXPECT_NE(next.address(), static_cast<void*>(address));
}

TEST(VulkanDevice, LargeMemoryIsUsedAgainUnderAnotherAddress) {
  VulkanDevice device(options(true));  // staging: mapped memory is not kept for reuse
  constexpr std::size_t kLarge = 300 << 20;
  const std::vector<float> sent{1, 2, 3};
  std::vector<float> back(3);
  std::set<void*> addresses;
  for (const std::size_t bytes : {kLarge, kLarge - 4096, kLarge + 4096, kLarge}) {
    const Buffer buffer = device.allocate(bytes);
    EXPECT_TRUE(addresses.insert(buffer.address()).second);
    device.upload(static_cast<std::byte*>(buffer.address()) + bytes - 12, sent.data(), 12);
    device.download(back.data(), static_cast<std::byte*>(buffer.address()) + bytes - 12, 12);
    EXPECT_EQ(back, sent);
    EXPECT_THROW(device.bind(buffer.address(), bytes + 4), DeviceError);
    EXPECT_EQ(device.take_messages(), std::vector<std::string>{});
  }
}

TEST(VulkanDevice, BudgetShrinksByWhatIsAllocated) {
  VulkanDevice device(options());
  const std::uint64_t before = device.memory().available;
  {
    const Buffer buffer = device.allocate(64 << 20);
    EXPECT_LE(device.memory().available, before - (64 << 20));
  }
  EXPECT_GT(device.memory().available, before - (64 << 20));
}

TEST(VulkanDevice, ADeviceThatIsNotThereIsUnavailableWithTheOnesThatAre) {
  const std::string text = why([] {
    VulkanOptions wanted;
    wanted.device = "no such device";
    VulkanDevice device(wanted);
  });
  EXPECT_NE(text.find("ASSAY_VULKAN_DEVICE=no such device"), std::string::npos) << text;
  EXPECT_NE(text.find("device 0, "), std::string::npos) << text;
}

TEST(VulkanDevice, NoDriverIsUnavailableWithTheRemedy) {
  EXPECT_EXIT(
      {
        setenv("VK_ICD_FILENAMES", "/nonexistent.json", 1);
        setenv("VK_DRIVER_FILES", "/nonexistent.json", 1);
        std::fputs(why([] { VulkanDevice device(VulkanOptions{}); }).c_str(), stderr);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "mesa-vulkan-drivers");
}

TEST(VulkanDevice, NoValidationLayerIsUnavailableWithTheRemedy) {
  EXPECT_EXIT(
      {
        setenv("VK_LAYER_PATH", "/nonexistent", 1);
        std::fputs(why([] { VulkanDevice device(options()); }).c_str(), stderr);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "vulkan-validationlayers");
}

TEST(VulkanDevice, AnEndlessShaderIsAnErrorAndSwitchesTheDeviceOff) {
  EXPECT_EXIT(
      {
        VulkanOptions impatient;
        impatient.work_limit_seconds = 1;
        VulkanDevice device(impatient);
        const Buffer buffer = device.allocate(4);
        const std::uint32_t zero = 0;
        device.upload(buffer.address(), &zero, 4);
        const std::array bindings{device.bind(buffer.address(), 4)};
        device.dispatch({.name = "test_endless",
                         .module = vulkan::shaders::test_endless.module,
                         .bindings = bindings,
                         .groups = {65535, 65535, 1}});
        std::fputs(why([&] { device.synchronize(); }).c_str(), stderr);
        std::fputs(why([&] { device.synchronize(); }).c_str(), stderr);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "VK_TIMEOUT.*switched off");
}

}  // namespace
}  // namespace assay
