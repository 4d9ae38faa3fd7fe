// Vulkan compute as a Device. Its users need no Vulkan header.
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
  bool staging = false;     ///< copy through a staging buffer even if the memory is shared with the host
  /// Longest time of submitted work before it counts as endless. The slowest kernel takes 0.8 s for a product of 512³
  /// on two busy cores; a GPU takes a hundredth of that. An endless shader cannot be stopped: the device stays off for
  /// the process.
  unsigned work_limit_seconds = 30;

  /// ASSAY_VULKAN_DEVICE, ASSAY_VULKAN_VALIDATION=1 and ASSAY_VULKAN_STAGING=1.
  static VulkanOptions from_environment();
};

/// A storage buffer of a dispatch: a whole allocation, and the element, of 4 bytes or 2, at which the tensor's view starts.
/// Shaders get the whole allocation, so that the driver does not drop a store outside the view, and the store reaches
/// the surrounding sentinels.
struct StorageBinding {
  void* allocation = nullptr;  ///< null (an empty view): a small buffer of the device's own
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

/// Receives a dispatch before its pipeline is looked up, and may replace its module. Returns false to skip the
/// dispatch.
using DispatchFilter = std::function<bool(SpirvDispatch& work)>;

/// One Vulkan device with one queue, for one thread at a time. Addresses are names of bytes of device memory:
/// arithmetic on them works, and dereferencing one on the host traps (they are not canonical). Addresses are never
/// reused, so that use of an address after its buffer's end is reported.
class VulkanDevice final : public Device {
 public:
  /// Throws Unavailable, with the remedy, if there is no loader, no driver, no device with a compute queue, or a
  /// feature that the kernels need is missing; DeviceError if the driver fails.
  explicit VulkanDevice(const VulkanOptions& options);
  ~VulkanDevice() override;

  Backend backend() const override { return Backend::vulkan; }
  std::string description() const override;
  /// Returns whether the driver runs shaders on the processor, such as lavapipe, instead of on a GPU.
  bool on_processor() const override;
  std::size_t largest_buffer() const override;
  MemoryInfo memory() const override;
  bool host_visible() const override { return false; }
  void synchronize() override;
  std::vector<std::string> take_messages() override;
  bool owns(const void* address) const override;
  /// Compiles the pipelines that the kernel dispatches for dense tensors from allocate(); runs nothing.
  void prepare(const Kernel& kernel, const Call& call) override;
  /// Into one command buffer, which one submission runs. Memory that is freed meanwhile stays with the recording, and
  /// so must the pipelines: do not forget them while it lives.
  std::unique_ptr<RecordedWork> record(const std::function<void()>& work) override;

  /// Returns the allocation that contains [address, address + bytes). Throws DeviceError if there is none, and
  /// Unavailable if the allocation is too large for a shader of this device. Zero bytes give a null binding.
  /// The view starts at a multiple of its element of 2 or 4 bytes; Unavailable, too, if shaders of this device have no
  /// 16-bit elements.
  StorageBinding bind(const void* address, std::size_t bytes, std::size_t element = 4) const;

  /// Records a dispatch, which sees the results of earlier ones and runs in synchronize() at the latest. A dispatch of
  /// no groups records nothing. Throws Unavailable if it exceeds the device's limits, DeviceError if the driver fails
  /// or earlier work failed or exceeded its time limit.
  void dispatch(const SpirvDispatch& work);

  /// Passes every dispatch through `filter` from now on (empty: none), and returns the previous filter. Use
  /// FilterScope.
  DispatchFilter exchange_filter(DispatchFilter filter);

  /// Drops the compiled pipelines, for campaigns over thousands of modules.
  void forget_pipelines();
  /// Returns the number of pipelines compiled, including dropped ones.
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

/// While alive, passes the dispatches of one device through a filter, for experiments that record or replace shaders.
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
