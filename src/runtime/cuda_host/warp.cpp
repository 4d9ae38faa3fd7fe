// Barriers, warp operations, asynchronous copies and poisoning.
#include <bit>
#include <cstring>

#include "runtime/cuda_host/block.hpp"
#include "runtime/cuda_host/hopper.hpp"
#include "runtime/cuda_host/races.hpp"

namespace assay::cuda_host {

void barrier(std::source_location site) {
  flush_store();
  block().wait(Thread::State::barrier, site);
}

unsigned lane() { return block().current().rank % warpSize; }

std::uint64_t draw() { return block().random().next(); }

void together(unsigned mask, Complete complete, void* operand, std::source_location site) {
  flush_store();
  Block& here = block();
  Thread& self = here.current();
  Warp& warp = here.warp();
  const unsigned bit = 1U << lane();
  if (!(mask & bit)) fail("warp mask", "the mask does not name the lane that executes it", site);
  if (mask & ~warp.lanes) fail("warp mask", "the mask names lanes that the last warp of the block does not have", site);
  if (mask & warp.exited) fail("warp mask", "the mask names lanes that have exited", site);
  self.mask = mask;
  self.complete = complete;
  self.operand = operand;
  self.site = site;
  warp.waiting |= bit;
  if ((warp.waiting & mask) != mask) return here.wait(Thread::State::warp, site);
  void* operands[warpSize] = {};
  for (unsigned left = mask; left != 0; left &= left - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(left));
    const Thread& other = *here.lane(l);
    if (other.mask != mask || other.complete != complete) return here.wait(Thread::State::warp, site);
    operands[l] = other.operand;
  }
  complete(operands, mask);
  meet(mask);
  share_known(mask);
  here.release(mask);
}

namespace {

void perform(const AsyncCopy& copy) {
  std::memcpy(copy.shared, copy.global, copy.bytes - copy.zero_bytes);
  std::memset(static_cast<std::byte*>(copy.shared) + copy.bytes - copy.zero_bytes, 0, copy.zero_bytes);
}

}  // namespace

void copy_async(void* shared, const void* global, std::size_t bytes, std::size_t zero_bytes,
                std::source_location site) {
  if ((bytes != 4 && bytes != 8 && bytes != 16) || zero_bytes > bytes)
    fail("invalid argument", "an asynchronous copy takes 4, 8 or 16 bytes", site);
  if ((reinterpret_cast<std::uintptr_t>(shared) | reinterpret_cast<std::uintptr_t>(global)) % bytes != 0)
    fail("misaligned address", "an asynchronous copy needs both addresses aligned to its size", site);
  Thread& self = block().current();
  const AsyncCopy copy{shared, global, bytes, zero_bytes, self.batch};
  if (draw() >> 63) perform(copy);
  else self.copies.push_back(copy);
}

void commit_async() { ++block().current().batch; }

void wait_async(std::size_t batches) {
  Thread& self = block().current();
  std::size_t done = 0;
  while (done < self.copies.size() && self.copies[done].batch + batches < self.batch) perform(self.copies[done++]);
  self.copies.erase(self.copies.begin(), self.copies.begin() + static_cast<std::ptrdiff_t>(done));
}

void poison(void* memory, std::size_t bytes) {
  const std::uint64_t bits = draw();
  // A quiet NaN with a payload, and a finite number between 2^40 and 2^71, of either sign; in either order.
  const std::uint64_t nan = 0x7fc00000U | (bits & 0x803fffffU);
  const std::uint64_t finite = ((bits >> 32) & 0x8fffffffU) | 0x53000000U;
  std::uint64_t words = nan << 32 | finite;
  if (bits >> 31 & 1U) words = std::rotl(words, 32);
  auto* at = static_cast<std::byte*>(memory);
  for (; bytes >= sizeof words; bytes -= sizeof words, at += sizeof words) std::memcpy(at, &words, sizeof words);
  std::memcpy(at, &words, bytes);
}

void* dynamic_shared(const char* name, std::size_t element_bytes) {
  if (name != nullptr) track(block().shared(), block().shared_bytes(), name, element_bytes);
  return block().shared();
}

}  // namespace assay::cuda_host
