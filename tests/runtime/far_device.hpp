// Devices with addresses that the host cannot read, with faults on demand, and kernels for them.
#pragma once

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "ops/matmul.hpp"
#include "runtime/registry.hpp"
#include "serve/dispatch.hpp"

namespace assay::far {

/// Behaviour of the process's far devices, by back end.
struct Behaviour {
  bool absent = false;  ///< the device cannot be made
  bool fails = false;   ///< the kernel throws DeviceError, after it has written the output
  bool prepare_fails = false;
  bool upload_fails = false;
  bool download_fails = false;
  bool wrong = false;  ///< the kernel writes zeros
  std::uint64_t memory = std::uint64_t{1} << 30;
  int runs = 0;      ///< kernel calls so far
  int prepared = 0;  ///< kernels prepared so far
  int made = 0;      ///< devices made so far
};
inline std::array<Behaviour, std::size(kBackends)> behaviours;
inline Behaviour& behaviour(Backend backend) { return behaviours[static_cast<std::size_t>(backend)]; }

/// Two kernels ran on a far device at the same time.
inline std::atomic<bool> busy{false}, overlapped{false};

/// Device addresses are host addresses with one high bit set, one per back end: dereferencing one crashes.
class FarDevice final : public Device {
 public:
  explicit FarDevice(Backend backend) : backend_(backend) { ++behaviour(backend).made; }

  static std::uintptr_t bit(Backend backend) { return std::uintptr_t{1} << (backend == Backend::cuda ? 62 : 61); }
  template <class T>
  static T* near(T* address) {
    constexpr std::uintptr_t kBits = std::uintptr_t{3} << 61;
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(address) & ~kBits);
  }

  Backend backend() const override { return backend_; }
  std::string description() const override { return "memory far from the host"; }
  MemoryInfo memory() const override { return {behaviour(backend_).memory, behaviour(backend_).memory - allocated}; }
  bool host_visible() const override { return false; }
  bool owns(const void* address) const override {
    return (reinterpret_cast<std::uintptr_t>(address) & bit(backend_)) != 0;
  }
  void synchronize() override {}
  void prepare(const Kernel&, const Call&) override {
    if (behaviour(backend_).prepare_fails) throw DeviceError("prepare", "FAR_LOST");
    ++behaviour(backend_).prepared;
  }

  std::uint64_t allocated = 0;

 protected:
  void* allocate_bytes(std::size_t bytes) override {
    if (bytes > memory().available) throw Unavailable("far memory", std::to_string(bytes) + " bytes requested");
    allocated += bytes;
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(std::malloc(bytes)) | bit(backend_));
  }
  void release_bytes(void* address, std::size_t bytes) noexcept override {
    allocated -= bytes;
    std::free(near(address));
  }
  void upload_bytes(void* destination, const void* source, std::size_t bytes) override {
    if (behaviour(backend_).upload_fails) throw DeviceError("upload", "FAR_LOST");
    std::memcpy(near(destination), source, bytes);
  }
  void download_bytes(void* destination, const void* source, std::size_t bytes) override {
    if (behaviour(backend_).download_fails) throw DeviceError("download", "FAR_LOST");
    std::memcpy(destination, near(source), bytes);
  }

 private:
  Backend backend_;
};

/// Multiplies on the host, after translating the tensors' addresses.
inline void multiply(const ops::MatmulArgs& args, Device& device) {
  Behaviour& how = behaviour(device.backend());
  ++how.runs;
  const bool far = !device.host_visible();
  if (far && busy.exchange(true)) overlapped = true;
  std::this_thread::yield();
  const float *a = FarDevice::near(args.a.as<const float>().data()),
              *b = FarDevice::near(args.b.as<const float>().data());
  float* c = FarDevice::near(args.c.as<float>().data());
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0;
      for (Index p = 0; p < args.k; ++p) sum += a[i * args.a.stride(0) + p] * b[p * args.b.stride(0) + j];
      c[i * args.c.stride(0) + j] = how.wrong ? 0 : sum;
    }
  if (far) busy = false;
  if (how.fails) throw DeviceError("submit", "FAR_LOST");
}

}  // namespace assay::far
