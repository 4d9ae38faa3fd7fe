// Planned memory for kernels that are written for every back end, and allocate on their device.
#pragma once

#include <cstdint>
#include <cstring>

#include "serve/scratch.hpp"
#include "runtime/device.hpp"

namespace assay::cpu {

/// The memory of this thread's ScratchScope.
class ScratchDevice final : public Device {
 public:
  Backend backend() const override { return Backend::cpu; }
  std::string description() const override { return "planned memory"; }
  MemoryInfo memory() const override { return {INT64_MAX, INT64_MAX}; }
  bool host_visible() const override { return true; }
  void synchronize() override {}

 protected:
  void* allocate_bytes(std::size_t bytes) override { return ScratchScope::take(bytes); }
  void release_bytes(void* address, std::size_t bytes) noexcept override { ScratchScope::give(address, bytes); }
  void upload_bytes(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download_bytes(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
};

/// Returns where such a kernel allocates: the device itself beside a session, as its memory is poisoned under test.
inline Device& scratch_of(Device& device) {
  static thread_local ScratchDevice planned;
  return ScratchScope::open() ? planned : device;
}

}  // namespace assay::cpu
