// Devices and their memory. Every back end implements this interface. Kernels access back-end features by the concrete
// class (`static_cast<VulkanDevice&>(device)`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "runtime/budget.hpp"

namespace assay {

struct Call;
struct Kernel;

enum class Backend { cpu, cuda_host, vulkan, cuda };
inline constexpr Backend kBackends[] = {Backend::cpu, Backend::cuda_host, Backend::vulkan, Backend::cuda};

/// What is known of a back end before its device is started.
struct BackendTraits {
  bool host = false;             ///< kernels work in the memory of their process, without a driver
  bool guard_pages = false;      ///< an access beside a tensor ends the call (GuardPage)
  bool bounded_buffers = false;  ///< Device::largest_buffer() is less than what a test may want
  bool blocks = false;           ///< a kernel is a grid of blocks, each of which costs time of its own
  bool same_order = false;       ///< threads take turns in the same order in each run
  bool chosen_order = false;     ///< and a test chooses the order (runtime/cuda_host/thread_order.hpp)
  int time_factor = 1;           ///< times the usual limit that a call may take
};
constexpr BackendTraits traits(Backend backend) {
  switch (backend) {
    case Backend::cpu: return {.host = true, .guard_pages = true};
    case Backend::cuda_host:
      return {.host = true,
              .guard_pages = true,
              .blocks = true,
              .same_order = true,
              .chosen_order = true,
              .time_factor = 6};
    case Backend::vulkan: return {.bounded_buffers = true, .blocks = true, .same_order = true};
    case Backend::cuda: return {.guard_pages = true, .blocks = true};
  }
  return {};
}

/// Returns "cpu", "cuda-host", "vulkan" or "cuda".
std::string_view name(Backend backend);
/// Throws InputError for any other name.
Backend backend_from(std::string_view name);

struct MemoryInfo {
  std::uint64_t total = 0;      ///< bytes that the device offers this process, as reported by the device
  std::uint64_t available = 0;  ///< bytes of them free now
};

class Device;

/// The side of an allocation on which an out-of-bounds access ends the call instead of reaching other memory.
enum class GuardPage { none, before, behind };

/// Owns one allocation on a device; frees it at the end of the scope. Move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, void* address, std::size_t bytes, std::shared_ptr<Account> account = {})
      : device_(&device), address_(address), bytes_(bytes), account_(std::move(account)) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  /// Returns the address in the device's address space (not dereferenceable on the host unless Device::host_visible()).
  void* address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
  std::shared_ptr<Account> account_;  ///< the reservation it is charged to
};

/// Work of a device, recorded once, that can be run again and again. Holds the memory that kernels allocated for
/// themselves.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  /// Submits all of it at once, behind what was submitted before, and waits. Throws DeviceError.
  virtual void run() = 0;
  /// Returns the seconds that the device took for the last run, by its own clock. Throws Unavailable if it has none.
  virtual double seconds() const = 0;
};

class Device {
 public:
  Device() : Device(std::make_shared<Budget>()) {}
  virtual ~Device() = default;

  virtual Backend backend() const = 0;
  /// Returns the hardware's name and driver, such as "llvmpipe (LLVM 15.0.6, 512 bits)".
  virtual std::string description() const = 0;
  virtual MemoryInfo memory() const = 0;
  /// Returns whether addresses are ordinary host pointers (cpu, cuda-host).
  virtual bool host_visible() const = 0;
  /// Returns whether the host's processors do the work, as lavapipe's do among Vulkan devices; false for a GPU.
  virtual bool on_processor() const { return true; }
  /// Returns the bytes of the largest allocation usable by a kernel.
  virtual std::size_t largest_buffer() const { return SIZE_MAX; }

  /// Throws Unavailable if `bytes` exceeds the device's budget or this thread's reservation (serve/reservation.hpp),
  /// DeviceError if the device fails. Zero bytes give a null address. Contents are undefined.
  Buffer allocate(std::size_t bytes);
  /// Allocates memory such that accesses beyond the given side end the call with a DeviceError. Needs
  /// has_guard_pages(). With GuardPage::behind, the end is aligned like the beginning of any allocation, and `bytes`
  /// decides the alignment of the beginning.
  Buffer allocate(std::size_t bytes, GuardPage guard_page);
  void upload(void* destination, const void* source, std::size_t bytes);
  void download(void* destination, const void* source, std::size_t bytes);
  /// Waits for all submitted work. Throws DeviceError if any of it failed.
  virtual void synchronize() = 0;
  /// Returns messages of validation layers since the last call; any message fails a run under test.
  virtual std::vector<std::string> take_messages() { return {}; }

  /// Returns whether the address is in memory of this device that the host cannot read.
  virtual bool owns(const void*) const { return false; }
  /// Does in advance all one-time work of a kernel's first run on such a call. `call` has the dims, params and dense
  /// shapes, but its tensors have no memory. The default, for host memory, runs the kernel on zeros and throws what
  /// this run throws.
  virtual void prepare(const Kernel& kernel, const Call& call);
  /// Records what kernels submit while `work` runs, without running it. Null where the device runs kernels at once, as
  /// host memory does. Throws Unavailable where a kernel waits for results of its own.
  virtual std::unique_ptr<RecordedWork> record(const std::function<void()>& work) {
    static_cast<void>(work);
    return nullptr;
  }
  /// Returns the budget from which reservations are made.
  Budget& budget() { return *budget_; }
  /// Returns whether memory may have inaccessible sides.
  virtual bool has_guard_pages() const { return false; }

 protected:
  friend class Buffer;
  /// For devices that share one pool of memory.
  explicit Device(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}

  // Implement allocate, upload, download and ~Buffer on this device; bytes are never 0.
  virtual void* allocate_bytes(std::size_t bytes) = 0;
  virtual void release_bytes(void* address, std::size_t bytes) noexcept = 0;
  virtual void upload_bytes(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void download_bytes(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void* allocate_guarded(std::size_t bytes, GuardPage guard_page);

 private:
  template <class Bytes>
  Buffer accounted(std::size_t bytes, Bytes make);

  std::shared_ptr<Budget> budget_;
};

/// Returns the process's device of this back end, created on first use (never before a worker has been forked). Throws
/// Unavailable{what, why} if there is none; the reason names the remedy.
Device& device(Backend backend);
/// Returns the device if it has been created already, otherwise null. Creates none.
Device* started_device(Backend backend);

/// Each back end's library defines one registration. A build without the library registers none, and device() reports
/// it.
using DeviceFactory = std::unique_ptr<Device> (*)();
struct DeviceRegistration {
  DeviceRegistration(Backend backend, DeviceFactory factory);
};

}  // namespace assay
