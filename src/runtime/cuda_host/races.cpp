// Races on shared memory, in kernels compiled with -fsanitize=thread: their loads and stores call the functions at the
// end of this file, in place of that sanitizer's own. Two accesses of a byte race if one is a store that changes it and
// neither a barrier nor a warp operation of both threads lies between them (vector clocks within a warp, the number of
// the barrier between warps). Whatever the order drawn, a race of that order is found without a wrong result.
#include "runtime/cuda_host/races.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "runtime/cuda_host/block.hpp"

namespace assay::cuda_host {
namespace {

/// An access of a byte, void unless `phase` is the running one.
struct Access {
  std::uint32_t phase = 0, clock = 0;
  std::uint16_t thread = 0;
};
struct Byte {
  Access store;
  Access load, other_load;  ///< of two warps, so that a store of any third thread meets one of another warp
  Access atomic;
};
struct Region {
  const std::byte* begin;
  std::size_t bytes;
  std::string name;
  std::size_t element_bytes;
  std::vector<Byte> shadow;
};

std::vector<Region> regions;  ///< the first `used` belong to the running block
std::size_t used = 0;
bool in_kernel = false;   ///< threads of a block run, not their host
std::uint32_t phase = 1;  ///< grows at every barrier, and between blocks
/// A store not yet made when it was announced: it counts if it changes memory.
struct {
  const std::byte* address = nullptr;
  std::size_t bytes = 0;
  std::array<std::byte, 16> before;
} pending;

Region* region_of(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  for (std::size_t r = 0; r < used; ++r)
    if (at >= regions[r].begin && at < regions[r].begin + regions[r].bytes) return &regions[r];
  return nullptr;
}

/// Returns whether the access lies before everything that the running thread does now.
bool ordered(const Access& access, const Thread& self) {
  if (access.phase != phase || access.thread == self.rank) return true;
  if (access.thread / warpSize != self.rank / warpSize) return false;
  return self.clocks[access.thread % warpSize] > access.clock;
}

Access now(const Thread& self) {
  return {phase, self.clocks[self.rank % warpSize], static_cast<std::uint16_t>(self.rank)};
}

/// The kind of place that a message ends with.
const char* last_wait(const Thread& self) { return self.site.line() == 0 ? "" : "; waited last"; }

[[noreturn]] void report(const char* does, const char* did, unsigned other, const Region& region, std::size_t byte) {
  static std::string text;  // outlives the abandoned stack
  const Thread& self = block().current();
  text = fmt::format("{} {}[{}], which thread {} has {} with no barrier or warp operation between the two{}", does,
                     region.name, byte / region.element_bytes, other, did, last_wait(self));
  fail("race on shared memory", text.c_str(), self.site);
}

/// Calls visit(byte, thread, after) for each tracked byte of an access of the running thread; after(did, access) ends
/// the kernel unless the earlier access is ordered before this one.
template <class Visit>
void visit_bytes(const char* does, const void* address, std::size_t bytes, Visit visit) {
  Region* const region = region_of(address);
  if (region == nullptr) return;
  const Thread& self = block().current();
  const auto first = static_cast<std::size_t>(static_cast<const std::byte*>(address) - region->begin);
  for (std::size_t i = first; i < first + bytes && i < region->bytes; ++i)
    visit(region->shadow[i], self, [&](const char* did, const Access& access) {
      if (!ordered(access, self)) report(does, did, access.thread, *region, i);
    });
}

void load(const void* address, std::size_t bytes) {
  visit_bytes("reads", address, bytes, [](Byte& byte, const Thread& self, auto after) {
    after("written", byte.store);
    after("changed atomically", byte.atomic);
    const bool other = byte.load.phase == phase && byte.load.thread / warpSize != self.rank / warpSize;
    (other ? byte.other_load : byte.load) = now(self);
  });
}

void store(const void* address, std::size_t bytes) {
  visit_bytes("writes", address, bytes, [](Byte& byte, const Thread& self, auto after) {
    after("written", byte.store);
    after("changed atomically", byte.atomic);
    after("read", byte.load);
    after("read", byte.other_load);
    byte.store = now(self);
  });
}

/// Devices fault on a load or store of a vector from an address that is no multiple of its size.
void expect_aligned(const void* address, std::size_t bytes) {
  if (!in_kernel || reinterpret_cast<std::uintptr_t>(address) % bytes == 0) return;
  static std::string text;
  text = fmt::format("a load or store of {} bytes at an address that is no multiple of {}{}", bytes, bytes,
                     last_wait(block().current()));
  fail("misaligned address", text.c_str(), block().current().site);
}

void announce_load(const void* address, std::size_t bytes) {
  if (used == 0) return;
  flush_store();
  load(address, bytes);
}

void announce_store(const void* address, std::size_t bytes) {
  if (used == 0) return;
  flush_store();
  if (bytes > pending.before.size()) return store(address, bytes);
  if (region_of(address) == nullptr) return;
  pending.address = static_cast<const std::byte*>(address);
  pending.bytes = bytes;
  std::memcpy(pending.before.data(), address, bytes);
}

}  // namespace

void flush_store() {
  if (pending.address == nullptr) return;
  const std::byte* const address = std::exchange(pending.address, nullptr);
  if (std::memcmp(address, pending.before.data(), pending.bytes) != 0) store(address, pending.bytes);
}

void begin_phase() { ++phase; }

void begin_tracking() { in_kernel = true; }

void end_tracking() {
  in_kernel = false;
  used = 0;
  pending.address = nullptr;
  begin_phase();
}

void meet(unsigned mask) {
  if (used == 0) return;
  std::array<std::uint32_t, warpSize> joined{};
  for (unsigned left = mask; left != 0; left &= left - 1) {
    const auto& clocks = block().lane(static_cast<unsigned>(std::countr_zero(left)))->clocks;
    for (std::size_t l = 0; l < joined.size(); ++l) joined[l] = std::max(joined[l], clocks[l]);
  }
  for (unsigned left = mask; left != 0; left &= left - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(left));
    joined[l] += 1;
  }
  for (unsigned left = mask; left != 0; left &= left - 1)
    block().lane(static_cast<unsigned>(std::countr_zero(left)))->clocks = joined;
}

void track(const void* array, std::size_t bytes, const char* name, std::size_t element_bytes) {
  if (bytes == 0 || region_of(array) != nullptr) return;
  if (used == regions.size()) regions.emplace_back();
  Region& region = regions[used++];
  region.begin = static_cast<const std::byte*>(array);
  region.bytes = bytes;
  region.name = name;
  region.element_bytes = element_bytes;
  if (region.shadow.size() < bytes) region.shadow.resize(bytes);
}

void shared_atomic(const void* address, std::size_t bytes) {
  if (used == 0) return;
  flush_store();
  visit_bytes("changes atomically", address, bytes, [](Byte& byte, const Thread& self, auto after) {
    after("written", byte.store);
    after("read", byte.load);
    after("read", byte.other_load);
    byte.atomic = now(self);
  });
}

}  // namespace assay::cuda_host

#if !defined(__SANITIZE_THREAD__)

// The interface between compilers and their thread sanitizer, whose own library is not linked.
using assay::cuda_host::announce_load;
using assay::cuda_host::announce_store;
using assay::cuda_host::expect_aligned;

#pragma GCC visibility push(hidden)
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}
void __tsan_read_range(void* at, unsigned long bytes) { announce_load(at, bytes); }
void __tsan_write_range(void* at, unsigned long bytes) { announce_store(at, bytes); }
#define ASSAY_ACCESS(n)                                             \
  void __tsan_read##n(void* at) {                                   \
    expect_aligned(at, n);                                          \
    announce_load(at, n);                                           \
  }                                                                 \
  void __tsan_write##n(void* at) {                                  \
    expect_aligned(at, n);                                          \
    announce_store(at, n);                                          \
  }                                                                 \
  void __tsan_unaligned_read##n(void* at) { announce_load(at, n); } \
  void __tsan_unaligned_write##n(void* at) { announce_store(at, n); }
ASSAY_ACCESS(1)
ASSAY_ACCESS(2)
ASSAY_ACCESS(4)
ASSAY_ACCESS(8)
ASSAY_ACCESS(16)
// Atomic operations of C++ in host code.
#define ASSAY_ATOMICS(bits, T)                                                                                        \
  T __tsan_atomic##bits##_load(const volatile T* at, int) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }           \
  void __tsan_atomic##bits##_store(volatile T* at, T x, int) { __atomic_store_n(at, x, __ATOMIC_SEQ_CST); }           \
  T __tsan_atomic##bits##_exchange(volatile T* at, T x, int) { return __atomic_exchange_n(at, x, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_add(volatile T* at, T x, int) { return __atomic_fetch_add(at, x, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_sub(volatile T* at, T x, int) { return __atomic_fetch_sub(at, x, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_and(volatile T* at, T x, int) { return __atomic_fetch_and(at, x, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_or(volatile T* at, T x, int) { return __atomic_fetch_or(at, x, __ATOMIC_SEQ_CST); }   \
  T __tsan_atomic##bits##_fetch_xor(volatile T* at, T x, int) { return __atomic_fetch_xor(at, x, __ATOMIC_SEQ_CST); } \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* at, T* old, T x, int, int) {                          \
    return __atomic_compare_exchange_n(at, old, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                        \
  }                                                                                                                   \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* at, T* old, T x, int, int) {                            \
    return __atomic_compare_exchange_n(at, old, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                        \
  }
ASSAY_ATOMICS(8, unsigned char)
ASSAY_ATOMICS(16, unsigned short)
ASSAY_ATOMICS(32, unsigned)
ASSAY_ATOMICS(64, unsigned long)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"
#pragma GCC visibility pop

#endif
