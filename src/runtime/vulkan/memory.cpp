#include "runtime/vulkan/memory.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace assay::vulkan {
namespace {

using Flag = vk::MemoryPropertyFlagBits;
constexpr vk::MemoryPropertyFlags kShared =
    Flag::eDeviceLocal | Flag::eHostVisible | Flag::eHostCoherent | Flag::eHostCached;
constexpr vk::BufferUsageFlags kUsage = vk::BufferUsageFlagBits::eStorageBuffer |
                                        vk::BufferUsageFlagBits::eTransferSrc | vk::BufferUsageFlagBits::eTransferDst;
// Not canonical on x86-64 and Arm: dereferencing one on the host faults at once.
constexpr std::uintptr_t kFirstAddress = 0x00a5'0000'0000'0000;
constexpr std::uintptr_t kLastAddress = kFirstAddress | 0x0000'ffff'ffff'ffff;
constexpr std::uintptr_t kSpacing = 64 * 1024;
constexpr std::uint64_t kLarge = 256 << 20;

constexpr std::uintptr_t round_up(std::uintptr_t value, std::uintptr_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Returns the first memory type among `bits` with these properties.
std::optional<std::uint32_t> type_with(const Context& context, std::uint32_t bits, vk::MemoryPropertyFlags wanted) {
  for (std::uint32_t i = 0; i < context.memory.memoryTypeCount; ++i)
    if ((bits >> i & 1) != 0 && (context.memory.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
  return std::nullopt;
}

/// Returns the memory types that a buffer of this usage may use (the same for every size).
std::uint32_t types_for(const Context& context, vk::BufferUsageFlags usage) {
  const auto probe = context.device->createBufferUnique({{}, 4, usage});
  return context.device->getBufferMemoryRequirements(*probe).memoryTypeBits;
}

}  // namespace

Memory::Memory(const Context& context, bool staging) : context_(context), next_(kFirstAddress) {
  checked("vkCreateBuffer", [&] {
    const std::uint32_t bits = types_for(context, kUsage);
    const auto shared = staging ? std::nullopt : type_with(context, bits, kShared);
    // The specification lists types with fewer properties first: plain device memory comes before memory that the host
    // may write through a slow, uncached window.
    map_ = shared.has_value();
    type_ = shared ? *shared : type_with(context, bits, Flag::eDeviceLocal).value_or(0);
  });
}

Allocation Memory::make(std::size_t bytes, vk::BufferUsageFlags usage, std::uint32_t type) const {
  Allocation made;
  made.bytes = bytes;
  made.buffer = context_.device->createBufferUnique({{}, round_up(bytes, 4), usage});
  const vk::MemoryRequirements requirements = context_.device->getBufferMemoryRequirements(*made.buffer);
  made.memory_bytes = requirements.size;
  made.memory = context_.device->allocateMemoryUnique({made.memory_bytes, type});
  context_.device->bindBufferMemory(*made.buffer, *made.memory, 0);
  return made;
}

void Memory::release_cached() {
  kept_.reset();
  kept_bytes_ = 0;
}

Allocation Memory::make_or_reuse(std::size_t bytes) {
  if (bytes < kLarge || bytes > kept_bytes_) {
    if (bytes >= kLarge) release_cached();
    return make(bytes, kUsage, type_);
  }
  Allocation made;
  made.bytes = bytes;
  made.buffer = context_.device->createBufferUnique({{}, round_up(bytes, 4), kUsage});
  if (context_.device->getBufferMemoryRequirements(*made.buffer).size > kept_bytes_) {
    release_cached();
    return make(bytes, kUsage, type_);
  }
  made.memory_bytes = std::exchange(kept_bytes_, 0);
  made.memory = std::move(kept_);
  context_.device->bindBufferMemory(*made.buffer, *made.memory, 0);
  return made;
}

Allocation Memory::staging_buffer(std::size_t bytes) const {
  return checked("vkAllocateMemory", [&] {
    const vk::BufferUsageFlags usage = vk::BufferUsageFlagBits::eTransferSrc | vk::BufferUsageFlagBits::eTransferDst;
    const std::uint32_t bits = types_for(context_, usage);
    const vk::MemoryPropertyFlags coherent = Flag::eHostVisible | Flag::eHostCoherent;
    // Prefer cached memory, because downloads read it. The specification guarantees a coherent type.
    const auto cached = type_with(context_, bits, coherent | Flag::eHostCached);
    Allocation made = make(bytes, usage, cached ? *cached : type_with(context_, bits, coherent).value());
    made.mapped = static_cast<std::byte*>(context_.device->mapMemory(*made.memory, 0, VK_WHOLE_SIZE));
    return made;
  });
}

Allocation Memory::empty_buffer() const {
  return checked("vkAllocateMemory", [&] { return make(16, kUsage, type_); });
}

const Allocation& Memory::allocate(std::size_t bytes) {
  MemoryInfo now = info();
  if (bytes > now.available && bytes > kept_bytes_) {
    release_cached();
    now = info();
  }
  const auto refuse = [&](const std::string& why) {
    return Unavailable("vulkan memory", std::to_string(bytes) + " bytes asked: " + why);
  };
  if (bytes > now.available && bytes > kept_bytes_)
    throw refuse(std::to_string(now.available) + " of the device's " + std::to_string(now.total) + " are free");
  if (bytes > context_.max_allocation)
    throw refuse("one allocation holds at most " + std::to_string(context_.max_allocation));
  if (allocations_.size() + 3 > context_.limits.maxMemoryAllocationCount)
    throw refuse("the device's " + std::to_string(context_.limits.maxMemoryAllocationCount) +
                 " allocations are in use");
  Allocation made;
  try {
    made = make_or_reuse(bytes);
  } catch (const vk::OutOfDeviceMemoryError& e) {
    throw refuse(e.what());
  } catch (const vk::OutOfHostMemoryError& e) {
    throw refuse(e.what());
  } catch (const vk::SystemError& e) {
    throw DeviceError("vkAllocateMemory", code_name(static_cast<vk::Result>(e.code().value())), e.what());
  }
  if (map_)
    made.mapped = static_cast<std::byte*>(
        checked("vkMapMemory", [&] { return context_.device->mapMemory(*made.memory, 0, VK_WHOLE_SIZE); }));
  made.address = next_;
  next_ += round_up(bytes, kSpacing) + kSpacing;  // a gap, so that one past the end is in no other allocation
  allocated_ += bytes;
  return allocations_.emplace(made.address, std::move(made)).first->second;
}

Allocation Memory::take(const void* address) noexcept {
  const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == allocations_.end()) return {};
  Allocation taken = std::move(found->second);
  allocations_.erase(found);
  return taken;
}

void Memory::free(const void* address) noexcept {
  const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == allocations_.end()) return;
  Allocation& freed = found->second;
  allocated_ -= freed.bytes;
  if (freed.mapped == nullptr && freed.memory_bytes >= kLarge) {
    freed.buffer.reset();
    kept_ = std::move(freed.memory);
    kept_bytes_ = freed.memory_bytes;
  }
  allocations_.erase(found);
}

bool Memory::holds(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= kFirstAddress && at <= kLastAddress;
}

const Allocation& Memory::find(const void* address, std::size_t bytes) const {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  auto after = allocations_.upper_bound(first);
  if (after != allocations_.begin()) {
    const Allocation& candidate = std::prev(after)->second;
    const std::uintptr_t offset = first - candidate.address;
    if (offset <= candidate.bytes && bytes <= candidate.bytes - offset) return candidate;
  }
  throw DeviceError("address lookup", "not device memory",
                    std::to_string(bytes) + " bytes at " + std::to_string(first) +
                        " are not inside one live allocation of this Vulkan device");
}

MemoryInfo Memory::info() const {
  const std::uint32_t heap = context_.memory.memoryTypes[type_].heapIndex;
  const std::uint64_t size = context_.memory.memoryHeaps[heap].size;
  if (!context_.memory_budget) return {size, size - std::min(size, allocated_)};
  const auto chain =
      context_.physical
          .getMemoryProperties2<vk::PhysicalDeviceMemoryProperties2, vk::PhysicalDeviceMemoryBudgetPropertiesEXT>();
  const auto& budget = chain.get<vk::PhysicalDeviceMemoryBudgetPropertiesEXT>();
  return {size, budget.heapBudget[heap] - std::min(budget.heapBudget[heap], budget.heapUsage[heap])};
}

}  // namespace assay::vulkan
