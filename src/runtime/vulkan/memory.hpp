// Device memory: one VkBuffer with its own memory per allocation, in an address space managed here. Internal.
#pragma once

#include <map>

#include "runtime/vulkan/context.hpp"

namespace assay::vulkan {

/// Members are destroyed in reverse order: the buffer before the memory it is bound to.
struct Allocation {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  vk::UniqueDeviceMemory memory;
  vk::UniqueBuffer buffer;
  std::uint64_t memory_bytes = 0;  ///< size of `memory`; at least `bytes`
  std::byte* mapped = nullptr;     ///< host address, if the memory is shared with the host
};

class Memory {
 public:
  /// `staging`: use memory that the host cannot access even if other memory is shared.
  Memory(const Context& context, bool staging);

  /// Throws Unavailable if `bytes` exceeds the device's budget or its largest allocation.
  const Allocation& allocate(std::size_t bytes);
  /// Gives an allocation to the caller, who frees it: its address is no longer known.
  Allocation take(const void* address) noexcept;
  void free(const void* address) noexcept;
  /// Returns the allocation that contains [address, address + bytes). Throws DeviceError if there is none.
  const Allocation& find(const void* address, std::size_t bytes) const;
  /// Returns whether the address is in the range of allocations, live or not. Reads no state: callable from any thread.
  static bool holds(const void* address);
  MemoryInfo info() const;
  /// Returns mapped memory for copies, outside the address space.
  Allocation staging_buffer(std::size_t bytes) const;
  /// Returns a small storage buffer outside the address space, bound for empty views.
  Allocation empty_buffer() const;

 private:
  Allocation make(std::size_t bytes, vk::BufferUsageFlags usage, std::uint32_t type) const;
  /// Like make(), for a tensor: reuses the kept memory if it is large enough.
  Allocation make_or_reuse(std::size_t bytes);
  void release_cached();

  const Context& context_;
  std::uint32_t type_ = 0;       ///< memory type of every allocation
  bool map_ = false;             ///< memory is shared with the host, which copies without a staging buffer
  std::uint64_t allocated_ = 0;  ///< bytes allocated here
  /// The last large memory freed, kept for the next allocation that fits: drivers take up to 0.1 s for gigabytes.
  vk::UniqueDeviceMemory kept_;
  std::uint64_t kept_bytes_ = 0;
  std::uintptr_t next_;
  std::map<std::uintptr_t, Allocation> allocations_;
};

}  // namespace assay::vulkan
