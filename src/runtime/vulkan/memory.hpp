// Device memory: one VkBuffer with its own memory per allocation, under addresses of our own. Internal.
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
  std::uint64_t memory_bytes = 0;  ///< of `memory`; at least `bytes`
  std::byte* mapped = nullptr;     ///< host address, where the memory is shared with the host
};

class Memory {
 public:
  /// `staging`: use memory that the host cannot see even where it is shared.
  Memory(const Context& context, bool staging);

  /// Throws Unavailable where the device's budget or its largest allocation does not hold `bytes`.
  const Allocation& allocate(std::size_t bytes);
  /// Gives an allocation to the caller, who frees it: its address is no longer known.
  Allocation take(const void* address) noexcept;
  void free(const void* address) noexcept;
  /// The allocation holding [address, address + bytes); throws DeviceError where there is none.
  const Allocation& find(const void* address, std::size_t bytes) const;
  /// True for addresses of the range that allocations are given, of live ones and others. Reads no state: any thread.
  static bool holds(const void* address);
  MemoryInfo info() const;
  /// Memory for copies, mapped; outside the address space.
  Allocation staging_buffer(std::size_t bytes) const;
  /// A small storage buffer outside the address space, to bind where a view has no elements.
  Allocation empty_buffer() const;

 private:
  Allocation make(std::size_t bytes, vk::BufferUsageFlags usage, std::uint32_t type) const;
  /// `make` for a tensor: in the kept memory, if that is large enough.
  Allocation make_or_reuse(std::size_t bytes);
  void forget_kept();

  const Context& context_;
  std::uint32_t type_ = 0;       ///< memory type of every allocation
  bool map_ = false;             ///< it is shared with the host, which copies without a staging buffer
  std::uint64_t allocated_ = 0;  ///< bytes in use by us
  /// The last large memory that was freed, for the next allocation that fits: drivers take up to 0.1 s for gigabytes.
  vk::UniqueDeviceMemory kept_;
  std::uint64_t kept_bytes_ = 0;
  std::uintptr_t next_;
  std::map<std::uintptr_t, Allocation> allocations_;
};

}  // namespace assay::vulkan
