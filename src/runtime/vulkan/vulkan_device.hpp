// Vulkan compute behind the Device interface. No Vulkan header is needed to use it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device.hpp"

namespace assay {

struct VulkanOptions {
  std::string device;       ///< index or part of the name; empty: discrete GPU, then integrated, then the processor
  bool validation = false;  ///< run under VK_LAYER_KHRONOS_validation, synchronization validation included
  bool staging = false;     ///< copy through a staging buffer even where the memory is shared with the host
  /// Longest that submitted work may take before it counts as endless. The slowest kernel takes 0.8 s for a
  /// product of 512³ on two busy cores; a GPU, a hundredth. An endless shader cannot be stopped: the device
  /// stays off for the process.
  unsigned work_limit_seconds = 30;

  /// ASSAY_VULKAN_DEVICE, ASSAY_VULKAN_VALIDATION=1 and ASSAY_VULKAN_STAGING=1.
  static VulkanOptions from_environment();
};

/// A storage buffer of a dispatch: a whole allocation, and the element (of 4 bytes) where the tensor's view
/// starts in it. Shaders get all of the allocation, so that a store outside the view lands in the sentinels
/// around it instead of being dropped by the driver.
struct StorageBinding {
  void* allocation = nullptr;  ///< null (a view of no elements): a small buffer of the device's own
  std::uint32_t first = 0;
  std::uint32_t elements = 0;  ///< capacity of the whole allocation
};

/// One dispatch of a SPIR-V module, given as data: entry point `main`, storage buffers 0, 1, ... of set 0,
/// specialization constants of 4 bytes with ids 0, 1, ...
struct SpirvDispatch {
  std::string_view name;  ///< for messages only
  std::span<const std::uint32_t> module;
  std::span<const std::uint32_t> specialization{};
  std::span<const StorageBinding> bindings{};
  std::span<const std::byte> push{};
  std::array<std::uint32_t, 3> groups{1, 1, 1};
};

/// Sees a dispatch before a pipeline is looked up for it, and may exchange its module. False leaves the dispatch out.
using DispatchFilter = std::function<bool(SpirvDispatch& work)>;

/// One Vulkan device and one queue of it; to be used by one thread at a time. Addresses are names for bytes
/// of device memory: arithmetic on them works, and dereferencing one on the host traps (they are not
/// canonical). They are never used twice, so that one kept past its buffer's end is reported.
class VulkanDevice final : public Device {
 public:
  /// Throws Unavailable, with the remedy, where there is no loader, no driver, no device with a compute
  /// queue, or a feature the kernels rest on is missing; DeviceError where the driver fails.
  explicit VulkanDevice(const VulkanOptions& options);
  ~VulkanDevice() override;

  Backend backend() const override { return Backend::vulkan; }
  std::string description() const override;
  /// True where it is no GPU but a driver that runs shaders on the processor, such as lavapipe.
  bool on_processor() const override;
  std::size_t largest_buffer() const override;
  MemoryInfo memory() const override;
  bool host_visible() const override { return false; }
  void synchronize() override;
  std::vector<std::string> take_messages() override;
  bool owns(const void* address) const override;
  /// Compiles the pipelines that the kernel dispatches for dense tensors as allocate() gives them; runs nothing.
  void prepare(const Kernel& kernel, const Call& call) override;
  /// Into one command buffer, which one submission runs. Memory that is freed meanwhile stays with the recording, and so must the
  /// pipelines: do not forget them while it lives.
  std::unique_ptr<Recording> record(const std::function<void()>& work) override;

  /// The allocation that holds [address, address + bytes). Throws DeviceError where none does, and Unavailable
  /// where the allocation is larger than a shader of this device can be given. Zero bytes: a null binding.
  StorageBinding bind(const void* address, std::size_t bytes) const;

  /// Records a dispatch; it sees the results of those before it, and runs at the latest in synchronize().
  /// No group at all records nothing. Throws Unavailable where the device's limits refuse it, DeviceError
  /// where the driver does or where earlier work failed or outran its time limit.
  void dispatch(const SpirvDispatch& work);

  /// Has every dispatch pass the filter from now on (empty: none), and gives back the filter before. Use FilterScope.
  DispatchFilter exchange_filter(DispatchFilter filter);

  /// Forgets the compiled pipelines: for campaigns over thousands of modules.
  void forget_pipelines();
  /// Pipelines compiled so far, forgotten ones included.
  std::uint64_t pipelines_compiled() const;

 protected:
  void* allocate_bytes(std::size_t bytes) override;
  void release_bytes(void* address, std::size_t bytes) noexcept override;
  void upload_bytes(void* destination, const void* source, std::size_t bytes) override;
  void download_bytes(void* destination, const void* source, std::size_t bytes) override;

 private:
  struct Impl;
  struct Recorded;
  std::unique_ptr<Impl> impl_;
};

/// While it lives, dispatches on one device pass a filter: for experiments that record shaders or exchange one.
class FilterScope {
 public:
  FilterScope(VulkanDevice& device, DispatchFilter filter)
      : device_(device), before_(device.exchange_filter(std::move(filter))) {}
  ~FilterScope() { device_.exchange_filter(std::move(before_)); }
  FilterScope(const FilterScope&) = delete;
  FilterScope& operator=(const FilterScope&) = delete;

 private:
  VulkanDevice& device_;
  DispatchFilter before_;
};

}  // namespace assay
