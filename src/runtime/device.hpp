// Devices and their memory. Every back end stands behind this interface; kernels reach what is special
// about theirs by the concrete class (`static_cast<VulkanDevice&>(device)`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "runtime/reservation.hpp"

namespace assay {

struct Call;
struct Kernel;

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

/// The side of an allocation where an access ends the call instead of finding somebody's memory.
enum class Fence { none, before, behind };

/// Owns one allocation on a device; frees it at the end of the scope. Move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, void* address, std::size_t bytes, std::shared_ptr<Account> account = {})
      : device_(&device), address_(address), bytes_(bytes), account_(std::move(account)) {}
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
  std::shared_ptr<Account> account_;  ///< the reservation it counts against
};

/// Work of a device, recorded once, that can be run again and again. Holds the memory that kernels allocated for themselves.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Submits all of it at once, behind what was submitted before, and waits. Throws DeviceError.
  virtual void run() = 0;
};

class Device {
 public:
  Device() : Device(std::make_shared<Budget>()) {}
  virtual ~Device() = default;

  virtual Backend backend() const = 0;
  /// The hardware's own name and driver, such as "llvmpipe (LLVM 15.0.6, 512 bits)".
  virtual std::string description() const = 0;
  virtual MemoryInfo memory() const = 0;
  /// True where addresses are ordinary host pointers (cpu, cuda-host).
  virtual bool host_visible() const = 0;
  /// False for a GPU; true where the host's processors do the work, as lavapipe does among Vulkan devices.
  virtual bool on_processor() const { return true; }
  /// Bytes of the largest allocation that a kernel can be given.
  virtual std::size_t largest_buffer() const { return SIZE_MAX; }

  /// Throws Unavailable if the device's budget, or this thread's reservation (runtime/reservation.hpp), does not hold
  /// it, DeviceError if the device fails. Zero bytes give a null address. Contents are undefined.
  Buffer allocate(std::size_t bytes);
  /// Accesses on that side of it end the call with a DeviceError. Needs has_fences(). The end is aligned like the beginning of any allocation:
  /// `bytes` decides how the beginning is.
  Buffer allocate(std::size_t bytes, Fence fence);
  void upload(void* destination, const void* source, std::size_t bytes);
  void download(void* destination, const void* source, std::size_t bytes);
  /// Returns when all submitted work has ended; throws DeviceError if any of it failed.
  virtual void synchronize() = 0;
  /// Messages of validation layers since the last call; any message fails a run under test.
  virtual std::vector<std::string> take_messages() { return {}; }

  /// True where the address lies in memory of this device that the host cannot read.
  virtual bool owns(const void*) const { return false; }
  /// Does once, ahead of time, what the first run of a kernel on such a call would have to do besides computing: dims,
  /// params and dense shapes are the call's, its tensors have no memory. Here, for host memory: runs the kernel on
  /// zeros. Throws what that run throws.
  virtual void prepare(const Kernel& kernel, const Call& call);
  /// Records what kernels submit while `work` runs, without running it. Null where the device runs kernels at once, as host memory
  /// does. Throws Unavailable where a kernel waits for results of its own.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) {
    static_cast<void>(work);
    return nullptr;
  }
  /// What is promised to reservations.
  Budget& budget() { return *budget_; }
  /// True where memory may have fences.
  virtual bool has_fences() const { return false; }

 protected:
  friend class Buffer;
  /// For devices that share one pool of memory.
  explicit Device(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}

  // What allocate, upload, download and ~Buffer do on this device; bytes are never 0.
  virtual void* allocate_bytes(std::size_t bytes) = 0;
  virtual void release_bytes(void* address, std::size_t bytes) noexcept = 0;
  virtual void upload_bytes(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void download_bytes(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void* allocate_fenced(std::size_t bytes, Fence fence);

 private:
  template <class Bytes>
  Buffer accounted(std::size_t bytes, Bytes make);

  std::shared_ptr<Budget> budget_;
};

/// The process's device of this back end, made on first use (never before a worker has been forked).
/// Throws Unavailable{what, why} where there is none; the reason names the remedy.
Device& device(Backend backend);
/// The same where it has been made already; null otherwise. Makes none.
Device* started_device(Backend backend);

/// Each back end's library defines one of these; a build without it registers none, and device() says so.
using DeviceFactory = std::unique_ptr<Device> (*)();
struct DeviceRegistration {
  DeviceRegistration(Backend backend, DeviceFactory factory);
};

}  // namespace assay
