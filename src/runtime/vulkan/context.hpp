// The Vulkan instance, device and queue of VulkanDevice. Internal: vulkan.hpp is included only here and through here.
#pragma once

// Entry points are looked up at run time, so that a machine without the loader gets a reason, not a failed start.
#define VULKAN_HPP_DISPATCH_LOADER_DYNAMIC 1
#include <mutex>
#include <string>
#include <vector>
#include <vulkan/vulkan.hpp>

#include "runtime/vulkan/vulkan_device.hpp"

namespace assay::vulkan {

/// Messages of the validation layer, which may call from any thread.
struct Messages {
  std::mutex mutex;
  std::vector<std::string> texts;
};

/// Members are destroyed in reverse order: device, messenger, instance.
struct Context {
  explicit Context(const VulkanOptions& options);

  std::unique_ptr<Messages> messages = std::make_unique<Messages>();
  vk::UniqueInstance instance;
  vk::UniqueDebugUtilsMessengerEXT messenger;
  vk::PhysicalDevice physical;
  vk::UniqueDevice device;
  vk::Queue queue;
  std::uint32_t family = 0;
  std::uint32_t timestamp_bits = 0;  ///< valid bits of the queue's clock; 0: it has none
  vk::PhysicalDeviceLimits limits;
  vk::PhysicalDeviceMemoryProperties memory;
  vk::DeviceSize max_allocation = 0;
  bool memory_budget = false;   ///< VK_EXT_memory_budget: the driver reports free memory
  bool stores_16_bits = false;  ///< storageBuffer16BitAccess: shaders read and write 16-bit elements of buffers
  std::string description;

 private:
  void create_instance(bool validation);
  void create_device();
};

/// Returns a name such as "VK_ERROR_DEVICE_LOST".
std::string code_name(vk::Result result);

/// Runs f and converts a Vulkan error to a DeviceError that names the call.
template <class F>
auto checked(const char* call, F&& f) {
  try {
    return f();
  } catch (const vk::SystemError& e) {
    throw DeviceError(call, code_name(static_cast<vk::Result>(e.code().value())), e.what());
  }
}

}  // namespace assay::vulkan
