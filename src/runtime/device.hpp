// Devices and their memory. Every back end stands behind this interface; kernels reach what is special
// about theirs by the concrete class (`static_cast<VulkanDevice&>(device)`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/errors.hpp"

namespace assay {

enum class Backend { cpu, cuda_host, vulkan, cuda };
inline constexpr Backend kBackends[] = {Backend::cpu, Backend::cuda_host, Backend::vulkan, Backend::cuda};

/// "cpu", "cuda-host", "vulkan", "cuda"
std::string_view name(Backend backend);
/// Throws InputError for a name that is none of them.
Backend backend_from(std::string_view name);

struct MemoryInfo {
  std::uint64_t total = 0;      ///< bytes the device has for us, asked from the device
  std::uint64_t available = 0;  ///< bytes of them free now
};

class Device;

/// Owns one allocation on a device; frees it at the end of the scope. Move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, void* address, std::size_t bytes) : device_(&device), address_(address), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  /// Address in the device's own space (not dereferenceable on the host unless Device::host_visible()).
  void* address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual Backend backend() const = 0;
  /// The hardware's own name and driver, such as "llvmpipe (LLVM 15.0.6, 512 bits)".
  virtual std::string description() const = 0;
  virtual MemoryInfo memory() const = 0;
  /// True where addresses are ordinary host pointers (cpu, cuda-host).
  virtual bool host_visible() const = 0;

  /// Throws Unavailable if the device's budget does not hold it, DeviceError if the device fails.
  /// Zero bytes give a null address. Contents are undefined.
  virtual Buffer allocate(std::size_t bytes) = 0;
  virtual void upload(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void download(void* destination, const void* source, std::size_t bytes) = 0;
  /// Returns when all submitted work has ended; throws DeviceError if any of it failed.
  virtual void synchronize() = 0;
  /// Messages of validation layers since the last call; any message fails a run under test.
  virtual std::vector<std::string> take_messages() { return {}; }

 protected:
  friend class Buffer;
  virtual void release(void* address, std::size_t bytes) noexcept = 0;
};

/// The process's device of this back end, made on first use (never before a worker has been forked).
/// Throws Unavailable{what, why} where there is none; the reason names the remedy.
Device& device(Backend backend);

/// Each back end's library defines one of these; a build without it registers none, and device() says so.
using DeviceFactory = std::unique_ptr<Device> (*)();
struct DeviceRegistration {
  DeviceRegistration(Backend backend, DeviceFactory factory);
};

}  // namespace assay
