// A CUDA device as an assay::Device.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/cuda/guarded_memory.hpp"
#include "runtime/device.hpp"

namespace assay {

/// Receives a kernel and its name in the PTX before the kernel is launched, prepared or allowed more memory. Returns
/// the kernel to run instead: the kernel itself, or a cudaKernel_t.
using LaunchFilter = std::function<const void*(const void* kernel, std::string_view name)>;

/// The first device that the runtime lists, with one stream on which all work runs in order. After a failure that ends
/// the context (a fault in a kernel), every call but description() rethrows the DeviceError of the first failure: the
/// process must end.
class CudaDevice final : public Device {
 public:
  /// Throws Unavailable with the driver's reason if there is no driver or no device.
  CudaDevice();
  ~CudaDevice() override;

  Backend backend() const override { return Backend::cuda; }
  std::string description() const override;
  /// Returns the result of cudaMemGetInfo; memory held by other processes is not available. Throws DeviceError on
  /// failure.
  MemoryInfo memory() const override;
  bool host_visible() const override { return false; }
  bool on_processor() const override { return false; }
  void synchronize() override;
  bool owns(const void* address) const override;
  bool has_guard_pages() const override { return true; }
  /// Loads the code that the kernel launches (loading is lazy) and creates the cuBLAS handle if needed; runs nothing.
  void prepare(const Kernel& kernel, const Call& call) override;
  /// Captures the launches into a graph. Prepare the kernels before.
  std::unique_ptr<RecordedWork> record(const std::function<void()>& work) override;

  cudaStream_t stream() const { return stream_; }
  /// Returns 10 * major + minor, such as 90.
  int compute_capability() const { return compute_capability_; }
  std::size_t most_shared_bytes() const { return shared_bytes_; }
  /// Lets `kernel` use this much dynamic shared memory. Throws Unavailable if the device has less.
  void allow_shared_bytes(const void* kernel, std::size_t bytes);
  /// Throws DeviceError{call, name of the code} unless `status` is cudaSuccess.
  void check(const char* call, cudaError_t status);
  /// Returns whether prepare() is running: launchers then stop short of the launch.
  bool preparing() const { return preparing_; }
  /// Enqueues a kernel with pointers to its arguments; inside prepare() only loads its code. An attribute of `config`
  /// for programmatic dependent launch is used only after a launch with it, so that what other kernels wrote is there,
  /// and only for code that waits for the previous launch: older virtual architectures cannot. Throws DeviceError if
  /// the launch fails.
  void launch(const cudaLaunchConfig_t& config, const void* kernel, void** arguments);
  /// Passes every kernel through `filter` from now on (empty: none), and returns the previous filter. Use
  /// LaunchFilterScope.
  LaunchFilter exchange_filter(LaunchFilter filter);

 protected:
  void* allocate_bytes(std::size_t bytes) override;
  void* allocate_guarded(std::size_t bytes, GuardPage guard_page) override;
  void release_bytes(void* address, std::size_t bytes) noexcept override;
  void upload_bytes(void* destination, const void* source, std::size_t bytes) override;
  void download_bytes(void* destination, const void* source, std::size_t bytes) override;

 private:
  struct Recorded;
  void require_alive() const;
  const void* filtered(const void* kernel);
  bool awaits_previous(const void* kernel, const void* launched);

  int ordinal_ = 0;
  int compute_capability_ = 0;
  std::size_t shared_bytes_ = 0;
  std::string name_;
  cudaStream_t stream_ = nullptr;
  bool preparing_ = false;
  bool overlaps_ = false;                                 ///< whether the last launch had the attribute
  Recorded* recording_ = nullptr;                         ///< what the stream captures into
  LaunchFilter filter_;                                   ///< may be empty
  std::unordered_map<const void*, std::size_t> allowed_;  ///< bytes of dynamic shared memory, by kernel
  std::unordered_map<const void*, bool> awaits_;          ///< whether the code waits for the previous launch, by kernel
  void* staging_ = nullptr;                               ///< pinned, for small downloads
  std::string dead_;                                      ///< the failure that ended the context
  std::string dead_code_;
  GuardedMemory guarded_;
};

/// While alive, passes the kernels of one device through a filter, for experiments that record or replace kernels.
class LaunchFilterScope {
 public:
  LaunchFilterScope(CudaDevice& device, LaunchFilter filter)
      : device_(device), before_(device.exchange_filter(std::move(filter))) {}
  ~LaunchFilterScope() { device_.exchange_filter(std::move(before_)); }
  LaunchFilterScope(const LaunchFilterScope&) = delete;
  LaunchFilterScope& operator=(const LaunchFilterScope&) = delete;

 private:
  CudaDevice& device_;
  LaunchFilter before_;
};

}  // namespace assay
