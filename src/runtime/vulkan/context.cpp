#include "runtime/vulkan/context.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <stdexcept>

VULKAN_HPP_DEFAULT_DISPATCH_LOADER_DYNAMIC_STORAGE

namespace assay::vulkan {
namespace {

constexpr const char* kLayer = "VK_LAYER_KHRONOS_validation";
// Requirements of the kernels' workgroups: 256 invocations, at most 32 KiB of shared memory.
constexpr std::uint32_t kInvocations = 256;
constexpr std::uint32_t kSharedBytes = 32 * 1024;

VKAPI_ATTR VkBool32 VKAPI_CALL collect(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                       const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto& messages = *static_cast<Messages*>(user);
  const std::scoped_lock lock(messages.mutex);
  messages.texts.emplace_back(data->pMessage);
  return VK_FALSE;
}

/// Loads libvulkan and its global entry points once. It stays loaded, because its threads may outlive any scope here.
void load_loader() {
  static const vk::DynamicLoader* loader = nullptr;
  if (loader == nullptr) {
    try {
      loader = new vk::DynamicLoader();
    } catch (const std::runtime_error&) {
      throw Unavailable("vulkan", "the loader libvulkan.so.1 is not installed (Debian: apt install libvulkan1)");
    }
  }
  VULKAN_HPP_DEFAULT_DISPATCHER.init(loader->getProcAddress<PFN_vkGetInstanceProcAddr>("vkGetInstanceProcAddr"));
}

bool has_layer() {
  return std::ranges::any_of(vk::enumerateInstanceLayerProperties(), [](const vk::LayerProperties& layer) {
    return std::strcmp(layer.layerName, kLayer) == 0;
  });
}

/// Returns the queue family to use, or -1.
int compute_family(vk::PhysicalDevice physical) {
  const auto families = physical.getQueueFamilyProperties();
  for (std::size_t i = 0; i < families.size(); ++i)
    if (families[i].queueFlags & vk::QueueFlagBits::eCompute) return static_cast<int>(i);
  return -1;
}

/// Returns why this device cannot run the kernels; empty if it can.
std::string lacks(vk::PhysicalDevice physical) {
  if (physical.getProperties().apiVersion < VK_API_VERSION_1_2) return "it offers less than Vulkan 1.2";
  const auto chain =
      physical.getProperties2<vk::PhysicalDeviceProperties2, vk::PhysicalDeviceFloatControlsProperties>();
  const auto& properties = chain.get<vk::PhysicalDeviceProperties2>().properties;
  if (compute_family(physical) < 0) return "it has no compute queue";
  if (!chain.get<vk::PhysicalDeviceFloatControlsProperties>().shaderSignedZeroInfNanPreserveFloat32)
    return "it does not promise to keep NaN and infinity (shaderSignedZeroInfNanPreserveFloat32)";
  if (properties.limits.maxComputeWorkGroupInvocations < kInvocations)
    return "its workgroups hold fewer than 256 invocations";
  if (properties.limits.maxComputeSharedMemorySize < kSharedBytes) return "its workgroups share less than 32 KiB";
  return {};
}

int rank(vk::PhysicalDeviceType type) {
  switch (type) {
    case vk::PhysicalDeviceType::eDiscreteGpu: return 0;
    case vk::PhysicalDeviceType::eIntegratedGpu: return 1;
    case vk::PhysicalDeviceType::eVirtualGpu: return 2;
    default: return 3;
  }
}

bool matches(const std::string& selector, std::size_t index, const char* name) {
  if (std::ranges::all_of(selector, [](unsigned char c) { return std::isdigit(c) != 0; }))
    return selector == std::to_string(index);
  return std::strstr(name, selector.c_str()) != nullptr;
}

vk::PhysicalDevice pick(vk::Instance instance, const std::string& selector) {
  std::string seen;
  vk::PhysicalDevice best;
  int best_rank = 0;
  const auto devices = instance.enumeratePhysicalDevices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const vk::PhysicalDeviceProperties properties = devices[i].getProperties();
    std::string why = lacks(devices[i]);
    if (why.empty() && !selector.empty() && !matches(selector, i, properties.deviceName))
      why = "not what ASSAY_VULKAN_DEVICE=" + selector + " asks for";
    seen += "; device " + std::to_string(i) + ", " + properties.deviceName.data() + ": " + why;
    if (!why.empty() || (best && rank(properties.deviceType) >= best_rank)) continue;
    best = devices[i];
    best_rank = rank(properties.deviceType);
  }
  if (devices.empty())
    throw Unavailable("vulkan",
                      "the loader found no device (Debian: apt install mesa-vulkan-drivers, "
                      "or the GPU's own driver)");
  if (!best) throw Unavailable("vulkan", "no device will do" + seen);
  return best;
}

}  // namespace

std::string code_name(vk::Result result) {
  std::string name = "VK";
  for (const char c : vk::to_string(result)) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0) name += '_';
    name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

Context::Context(const VulkanOptions& options) {
  load_loader();
  create_instance(options.validation);
  checked("vkEnumeratePhysicalDevices", [&] { physical = pick(*instance, options.device); });
  checked("vkCreateDevice", [&] { create_device(); });
}

void Context::create_instance(bool validation) {
  if (validation && !has_layer())
    throw Unavailable("vulkan", std::string("validation was asked for and ") + kLayer +
                                    " is not installed (Debian: apt install vulkan-validationlayers)");
  const vk::ApplicationInfo application("assay", 1, nullptr, 0, VK_API_VERSION_1_2);
  const std::vector<const char*> layers(validation ? 1 : 0, kLayer);
  std::vector<const char*> extensions;
  if (validation) extensions = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  const vk::ValidationFeatureEnableEXT synchronization = vk::ValidationFeatureEnableEXT::eSynchronizationValidation;
  const vk::ValidationFeaturesEXT features(synchronization, {});
  const vk::InstanceCreateInfo info({}, &application, layers, extensions, validation ? &features : nullptr);
  try {
    instance = vk::createInstanceUnique(info);
  } catch (const vk::IncompatibleDriverError&) {
    throw Unavailable("vulkan",
                      "the loader found no driver (Debian: apt install mesa-vulkan-drivers, "
                      "or the GPU's own driver)");
  } catch (const vk::SystemError& e) {
    throw DeviceError("vkCreateInstance", code_name(static_cast<vk::Result>(e.code().value())), e.what());
  }
  VULKAN_HPP_DEFAULT_DISPATCHER.init(*instance);
  if (!validation) return;
  using Severity = vk::DebugUtilsMessageSeverityFlagBitsEXT;
  using Type = vk::DebugUtilsMessageTypeFlagBitsEXT;
  messenger = checked("vkCreateDebugUtilsMessengerEXT", [&] {
    return instance->createDebugUtilsMessengerEXTUnique(
        {{}, Severity::eError | Severity::eWarning, Type::eValidation | Type::ePerformance, collect, messages.get()});
  });
}

void Context::create_device() {
  const auto properties = physical.getProperties2<vk::PhysicalDeviceProperties2, vk::PhysicalDeviceVulkan11Properties,
                                                  vk::PhysicalDeviceVulkan12Properties>();
  const auto& core = properties.get<vk::PhysicalDeviceProperties2>().properties;
  const auto& driver = properties.get<vk::PhysicalDeviceVulkan12Properties>();
  limits = core.limits;
  memory = physical.getMemoryProperties();
  max_allocation = properties.get<vk::PhysicalDeviceVulkan11Properties>().maxMemoryAllocationSize;
  description =
      std::string(core.deviceName.data()) + " (" + driver.driverName.data() + " " + driver.driverInfo.data() + ")";
  std::vector<const char*> extensions;
  for (const vk::ExtensionProperties& extension : physical.enumerateDeviceExtensionProperties())
    if (std::strcmp(extension.extensionName, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) == 0) {
      memory_budget = true;
      extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    }
  family = static_cast<std::uint32_t>(compute_family(physical));
  timestamp_bits = physical.getQueueFamilyProperties()[family].timestampValidBits;
  const float priority = 1;
  const vk::DeviceQueueCreateInfo queues({}, family, 1, &priority);
  const auto offered = physical.getFeatures2<vk::PhysicalDeviceFeatures2, vk::PhysicalDeviceVulkan11Features>();
  stores_16_bits = offered.get<vk::PhysicalDeviceVulkan11Features>().storageBuffer16BitAccess == VK_TRUE;
  vk::PhysicalDeviceVulkan11Features wanted;
  wanted.storageBuffer16BitAccess = stores_16_bits ? VK_TRUE : VK_FALSE;
  // No other feature is enabled: robustBufferAccess, above all, would hide an access outside a buffer.
  vk::DeviceCreateInfo info({}, queues, {}, extensions, nullptr);
  info.pNext = &wanted;
  device = physical.createDeviceUnique(info);
  queue = device->getQueue(family, 0);
}

}  // namespace assay::vulkan
