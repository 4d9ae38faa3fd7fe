#include "runtime/cuda_host/block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <utility>

#include "core/errors.hpp"
#include "runtime/cuda_host/hopper.hpp"
#include "runtime/cuda_host/races.hpp"
#include "runtime/cuda_host/thread_order.hpp"

namespace assay::cuda_host {

uint3 threadIdx{}, blockIdx{};
dim3 blockDim, gridDim;
std::uint64_t block_serial = 0;

namespace {

std::optional<std::uint64_t> base_seed;
std::uint64_t launches = 0;

std::uint64_t seed_of_process() {
  const char* order = std::getenv(kThreadOrder);
  return order != nullptr ? std::strtoull(order, nullptr, 10) : 0x61737361;
}

std::string text(const uint3& index) { return fmt::format("({}, {}, {})", index.x, index.y, index.z); }
std::string text(const dim3& size) { return text(uint3{size.x, size.y, size.z}); }
std::string text(const std::source_location& site) {
  const std::string_view file = site.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), site.line());
}

unsigned long long count(const dim3& size) { return 1ULL * size.x * size.y * size.z; }

/// Throws if the grid exceeds the limits of compute capability 9.0 (CUDA programming guide, table "Technical
/// Specifications per Compute Capability").
void check_limits(const Grid& grid) {
  const auto refuse = [](const char* code, const std::string& why) { throw DeviceError("kernel launch", code, why); };
  const dim3 &b = grid.threads, &g = grid.blocks;
  if (count(b) == 0 || count(b) > 1024 || b.z > 64)
    refuse("cudaErrorInvalidConfiguration", "a block of " + text(b) + " threads; 1 to 1024 are possible, 64 along z");
  if (count(g) == 0 || g.x > 0x7fffffffU || g.y > 65535 || g.z > 65535)
    refuse("cudaErrorInvalidConfiguration", "a grid of " + text(g) + " blocks; 1 to 65535 are possible along y and z");
  if (grid.shared_bytes > kMaxSharedBytes)
    refuse("cudaErrorInvalidValue", std::to_string(grid.shared_bytes) + " bytes of shared memory; " +
                                        std::to_string(kMaxSharedBytes) + " are possible");
}

uint3 unflatten(unsigned long long i, const dim3& size) {
  return {static_cast<unsigned>(i % size.x), static_cast<unsigned>(i / size.x % size.y),
          static_cast<unsigned>(i / size.x / size.y)};
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

}  // namespace

Block the_block;

void set_seed(std::uint64_t seed) {
  base_seed = seed;
  launches = 0;
}

void run(const Grid& grid) {
  check_limits(grid);
  if (!base_seed) base_seed = seed_of_process();
  block().run(grid, Random(*base_seed ^ Random(launches++).next()).next());
}

void Block::run(const Grid& grid, std::uint64_t seed) {
  grid_ = grid;
  random_ = Random(seed);
  gridDim = grid.blocks;
  blockDim = grid.threads;
  threads_ = static_cast<unsigned>(count(grid.threads));
  while (pool_.size() < threads_)
    restart(*pool_.emplace_back(std::make_unique<Thread>(static_cast<unsigned>(pool_.size()))));
  for (unsigned t = 0; t < threads_; ++t) pool_[t]->index = unflatten(t, grid.threads);
  // An allocation of exactly this size, so that the address sanitizer detects overruns. aligned_alloc may refuse sizes
  // that are not multiples of the alignment, and rounding up would hide an overrun.
  void* memory = nullptr;
  if (grid.shared_bytes > 0 && posix_memalign(&memory, 128, grid.shared_bytes) != 0) throw std::bad_alloc();
  const std::unique_ptr<void, Free> shared(memory);
  shared_ = shared.get();
  std::vector<unsigned long long> order(count(grid.blocks));
  std::iota(order.begin(), order.end(), 0ULL);
  for (std::size_t left = order.size(); left > 0; --left) {
    std::swap(order[left - 1], order[random_.below(left)]);
    run_block(order[left - 1]);
  }
}

void Block::restart(Thread& thread) {
  thread.fiber.start([] {
    while (true) {
      block().grid_.thread(block().grid_.kernel);
      flush_store();
      block().warp().exited |= 1U << cuda_host::lane();
      block().wait(Thread::State::exited, {});
    }
  });
}

void Block::run_block(unsigned long long number) {
  blockIdx = unflatten(number, grid_.blocks);
  ++block_serial;
  if (shared_ != nullptr) poison(shared_, grid_.shared_bytes);
  warps_.assign((threads_ + warpSize - 1) / warpSize, {});
  for (Thread& thread : threads()) {
    thread.copies.clear();
    thread.batch = 0;
    thread.site = {};
    warps_[thread.rank / warpSize].lanes |= 1U << thread.rank % warpSize;
  }
  make_all_ready();
  begin_tracking();
  while (true) {
    scheduler_.switch_to(choose());
    if (failure_)
      abandon(failure_->code, fmt::format("thread {}: {}{}", text(threadIdx), failure_->detail,
                                          failure_->site.line() == 0 ? "" : " at " + text(failure_->site)));
    if (all_are(Thread::State::exited)) return end_tracking();
    release_barrier();
  }
}

void Block::abandon(const char* code, const std::string& detail) {
  failure_.reset();
  end_tracking();
  for (auto& thread : pool_) restart(*thread);
  throw DeviceError("kernel", code, fmt::format("block {}: {}", text(blockIdx), detail));
}

bool Block::all_are(Thread::State state) const {
  return std::ranges::all_of(threads(), [&](const Thread& t) { return t.state == state; });
}

/// No thread is ready: all threads must be at one barrier.
void Block::release_barrier() {
  const Thread& first = *pool_[0];
  for (const Thread& thread : threads()) {
    if (thread.state == Thread::State::barrier && thread.site.line() == first.site.line() &&
        thread.site.file_name() == first.site.file_name())
      continue;
    const bool in_warp = std::ranges::any_of(threads(), [](const Thread& t) { return t.state == Thread::State::warp; });
    abandon(in_warp ? "warp divergence" : "barrier divergence", describe());
  }
  begin_phase();
  share_known();
  make_all_ready();
}

void Block::make_all_ready() {
  leader_ = random_.below(2 * warps_.size());  // no leading warp half of the time
  leading_.clear();
  ready_.clear();
  for (Thread& thread : threads()) make_ready(thread);
}

void Block::release(unsigned mask) {
  warp().waiting &= ~mask;
  for (unsigned left = mask; left != 0; left &= left - 1)
    if (Thread* thread = lane(static_cast<unsigned>(std::countr_zero(left))); thread != current_) make_ready(*thread);
}

void Block::fail(const char* code, const char* detail, std::source_location site) {
  failure_ = Failure{code, detail, site};
  current_->fiber.switch_to(scheduler_);
  std::abort();  // a failed block is never resumed
}

std::string Block::describe() const {
  const auto what = [](const Thread& t) -> std::string {
    switch (t.state) {
      case Thread::State::exited: return "have exited";
      case Thread::State::barrier: return "wait at the barrier " + text(t.site);
      case Thread::State::warp: return "wait for the other lanes of their mask at " + text(t.site);
      case Thread::State::ready: break;
    }
    return "can run";
  };
  std::string all;
  for (unsigned from = 0, to = 0; from < threads_; from = to) {
    const std::string state = what(*pool_[from]);
    while (to < threads_ && what(*pool_[to]) == state) ++to;
    all += (from ? "; threads " : "threads ") + std::to_string(from) + "-" + std::to_string(to - 1) + " " + state;
  }
  return all;
}

void fail(const char* code, const char* detail, std::source_location site) { block().fail(code, detail, site); }

}  // namespace assay::cuda_host
