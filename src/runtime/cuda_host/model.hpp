// The execution model of a CUDA block on the CPU: the basis of the headers in shim/ and of `assay::launch`.
//
// The threads of a block are fibers; blocks run one after another, in a random order, in one OS thread. This makes
// `__shared__` a plain static array, which the address sanitizer guards like any other, and makes every run a function
// of its seed. To use several cores, run kernels in separate worker processes.
//
// A thread runs until it waits (barrier, warp operation) or ends. The seed then selects one of the ready threads, so a
// missing barrier shows as a difference. Divergence at a barrier, masks that name absent lanes, misaligned addresses
// and impossible launches are DeviceErrors. Not thread-safe, like a device with one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace assay::cuda_host {

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

/// Indices of the running thread.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

/// Fixes the order of threads and blocks: launch number n after this call draws from (seed, n).
void set_seed(std::uint64_t seed);
/// Returns random bits of the running launch.
std::uint64_t draw();

struct Grid {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;            ///< dynamic shared memory
  void (*thread)(void* kernel) = nullptr;  ///< runs one thread of the kernel
  void* kernel = nullptr;
};
/// Runs the whole grid. Throws DeviceError: call "kernel launch" if a device would refuse the launch; call "kernel"
/// with code "barrier divergence", "warp divergence", "warp mask", "misaligned address" or "race on shared memory" for
/// undefined behaviour.
void run(const Grid& grid);

/// Ends the running kernel: run() throws DeviceError{"kernel", code, block, thread and detail}.
[[noreturn]] void fail(const char* code, const char* detail, std::source_location site);

/// Waits for every thread of the block at this source line.
void barrier(std::source_location site);

/// Runs a warp operation: each lane gives an operand, and the last arriving lane of `mask` runs `complete` on all
/// operands (null for other lanes).
using Complete = void (*)(void* const operands[warpSize], unsigned mask);
void together(unsigned mask, Complete complete, void* operand, std::source_location site);
/// Returns the lane of the running thread.
unsigned lane();

/// cp.async: copies 4, 8 or 16 bytes, the last `zero_bytes` of them zeros. A device may copy at any time between the
/// call and the end of the wait for the batch; here the seed selects one of these two moments.
void copy_async(void* shared, const void* global, std::size_t bytes, std::size_t zero_bytes, std::source_location site);
void commit_async();
/// Returns when all batches of this thread except the last `batches` have been copied.
void wait_async(std::size_t batches);

/// Serial number of the block within the process.
extern std::uint64_t block_serial;
/// Fills memory with garbage from the seed, NaN in every other word, so that reads of unwritten memory show.
void poison(void* memory, std::size_t bytes);
/// Names an array of shared memory of the running block, so that races on it are found (races.cpp).
void track(const void* array, std::size_t bytes, const char* name, std::size_t element_bytes);
/// Poisons a shared array when the first thread of a block reaches its declaration, and names it if it has a name.
struct SharedArray {
  std::uint64_t block = 0;

  void declare(void* array, std::size_t bytes, const char* name = nullptr, std::size_t element_bytes = 1) {
    if (block == block_serial) return;
    block = block_serial;
    poison(array, bytes);
    if (name != nullptr) track(array, bytes, name, element_bytes);
  }
};
/// An atomic operation on memory, which races with no other one.
void shared_atomic(const void* address, std::size_t bytes);
/// On functions whose accesses are not those of the kernel.
#define ASSAY_UNTRACKED __attribute__((no_sanitize("thread")))
/// Largest shared memory of a block, as on devices of compute capability 9.0.
inline constexpr std::size_t kMaxSharedBytes = 227 * 1024;
/// Returns the dynamic shared memory of the block, aligned to 128 bytes. A name makes races on it known.
void* dynamic_shared(const char* name = nullptr, std::size_t element_bytes = 1);

}  // namespace assay::cuda_host
