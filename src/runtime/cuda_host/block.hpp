// The running block: its threads and their scheduler. Internal to the execution model.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda_host/fiber.hpp"
#include "runtime/cuda_host/model.hpp"

namespace assay::cuda_host {

/// splitmix64 (Steele, Lea & Flood, OOPSLA 2014): every seed gives a good sequence.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>((next() >> 32) * n >> 32); }

 private:
  std::uint64_t state_;
};

struct AsyncCopy {
  void* shared;
  const void* global;
  std::size_t bytes, zero_bytes;
  std::uint64_t batch;
};

struct Thread {
  enum class State { ready, barrier, warp, exited };

  explicit Thread(unsigned rank_) : fiber(rank_), rank(rank_) {}

  Fiber fiber;
  unsigned rank;  ///< x fastest
  uint3 index{};
  State state = State::ready;
  std::source_location site;  ///< location of the wait
  unsigned mask = 0;          ///< lanes of its warp operation
  Complete complete = nullptr;
  void* operand = nullptr;
  std::vector<AsyncCopy> copies;
  std::uint64_t batch = 0;                       ///< batches committed
  std::array<std::uint32_t, warpSize> clocks{};  ///< of the lanes of its warp, as far as it has met them
};

/// Sets of lanes as bits.
struct Warp {
  unsigned lanes = 0;  ///< lanes that exist in the block
  unsigned exited = 0, waiting = 0;
};

class Block {
 public:
  void run(const Grid& grid, std::uint64_t seed);

  /// Switches to a random ready thread; returns when this thread is chosen again.
  void wait(Thread::State state, std::source_location site) {
    Thread& self = *current_;
    self.state = state;
    self.site = site;
    self.fiber.switch_to(choose());
  }
  /// Makes the threads in `mask` of the running thread's warp ready.
  void release(unsigned mask);
  /// Fails the kernel from the running thread, whose stack is abandoned without unwinding: it must own nothing.
  [[noreturn]] void fail(const char* code, const char* detail, std::source_location site);

  Thread& current() { return *current_; }
  /// Returns the warp of the running thread.
  Warp& warp() { return warps_[current_->rank / warpSize]; }
  /// Returns the thread of a lane of the running thread's warp; null if the block has none.
  Thread* lane(unsigned lane) {
    const unsigned rank = current_->rank / warpSize * warpSize + lane;
    return rank < threads_ ? pool_[rank].get() : nullptr;
  }
  Random& random() { return random_; }
  void* shared() { return shared_; }
  std::size_t shared_bytes() const { return grid_.shared_bytes; }

 private:
  /// Removes and returns a ready thread, or the scheduler if none is ready. The threads of a leading warp go first
  /// while ready, so this warp reaches the next barrier before others have started. A uniformly random order hardly
  /// ever does that.
  Fiber& choose() {
    std::vector<Thread*>& from = leading_.empty() ? ready_ : leading_;
    if (from.empty()) return scheduler_;
    if (&from == &ready_) std::swap(ready_.back(), ready_[random_.below(ready_.size())]);
    current_ = from.back();
    from.pop_back();
    threadIdx = current_->index;
    return current_->fiber;
  }
  void make_ready(Thread& thread) {
    thread.state = Thread::State::ready;
    (thread.rank / warpSize == leader_ ? leading_ : ready_).push_back(&thread);
  }
  /// Returns the threads of the running block, x fastest.
  auto threads() const {
    return std::views::transform(std::span(pool_).first(threads_), [](const auto& t) -> Thread& { return *t; });
  }
  /// Makes all threads ready, and draws a new leading warp or none.
  void make_all_ready();
  bool all_are(Thread::State state) const;
  void run_block(unsigned long long number);
  void release_barrier();
  [[noreturn]] void abandon(const char* code, const std::string& detail);
  void restart(Thread& thread);
  /// Returns a text such as "threads 0-15 wait at file:line; threads 16-31 have exited".
  std::string describe() const;

  Fiber scheduler_;
  Grid grid_;
  unsigned threads_ = 0;
  std::vector<std::unique_ptr<Thread>> pool_;
  std::vector<Warp> warps_;
  std::vector<Thread*> leading_, ready_;  ///< ready threads: of the leading warp, and others
  Thread* current_ = nullptr;
  unsigned leader_ = 0;  ///< number of the leading warp; out of range if there is none
  Random random_;
  void* shared_ = nullptr;
  struct Failure {
    const char* code;
    const char* detail;
    std::source_location site;
  };
  std::optional<Failure> failure_;
};

extern Block the_block;
inline Block& block() { return the_block; }

}  // namespace assay::cuda_host
