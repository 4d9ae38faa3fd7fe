// The execution model of a CUDA block on the CPU: what the headers in shim/ and `assay::launch` stand on.
//
// The threads of a block are fibers; blocks run one after another, in a random order, in one OS thread. That is
// deliberate: `__shared__` is then a plain static array, which the address sanitizer fences like any other, and every
// run is a function of its seed. Both cores are used by running kernels in separate worker processes.
//
// A thread runs until it waits (barrier, warp operation) or ends; which of those that can run comes next is drawn from
// the seed, so a missing barrier shows as a difference. Divergence at a barrier, masks that name lanes that do not take
// part, misaligned addresses and impossible launches are DeviceErrors. Not thread-safe, like a device's one stream.
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

/// Those of the thread that runs now.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

/// Fixes the order of threads and blocks: launch number n after this call draws from (seed, n).
void set_seed(std::uint64_t seed);
/// Random bits of the running launch.
std::uint64_t draw();

struct Grid {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;            ///< dynamic shared memory
  void (*thread)(void* kernel) = nullptr;  ///< runs one thread of the kernel
  void* kernel = nullptr;
};
/// Runs the whole grid. Throws DeviceError: call "kernel launch" where the device would refuse the launch, "kernel"
/// with code "barrier divergence", "warp divergence", "warp mask", "misaligned address" where the behaviour would be
/// undefined.
void run(const Grid& grid);

/// Ends the running kernel: run() throws DeviceError{"kernel", code, block, thread and detail}.
[[noreturn]] void fail(const char* code, const char* detail, std::source_location site);

/// Waits for every thread of the block at this very line.
void barrier(std::source_location site);

/// What the lanes of a warp do together: each gives an operand, and when all that `mask` names have come, the last of
/// them runs `complete` on the operands (null for other lanes).
using Complete = void (*)(void* const operands[warpSize], unsigned mask);
void together(unsigned mask, Complete complete, void* operand, std::source_location site);
/// Lane of the thread that runs now.
unsigned lane();

/// cp.async: a copy of 4, 8 or 16 bytes, the last `zero_bytes` of them zeros, happens at any time between the call and
/// the end of the wait for its batch: here at one of the two, drawn from the seed.
void copy_async(void* shared, const void* global, std::size_t bytes, std::size_t zero_bytes, std::source_location site);
void commit_async();
/// Returns when all batches of this thread but the last `batches` have been copied.
void wait_async(std::size_t batches);

/// Number of the block in the life of the process.
extern std::uint64_t block_serial;
/// Fills memory with garbage from the seed, NaN in every other word: unwritten reads show.
void poison(void* memory, std::size_t bytes);
/// Poisons a shared array when the first thread of a block comes to its declaration.
struct SharedArray {
  std::uint64_t block = 0;

  void declare(void* array, std::size_t bytes) {
    if (block == block_serial) return;
    block = block_serial;
    poison(array, bytes);
  }
};
/// Shared memory that a block may have, as on devices of compute capability 9.0.
inline constexpr std::size_t kMostSharedBytes = 227 * 1024;
/// Dynamic shared memory of the block, aligned to 128 bytes.
void* dynamic_shared();

}  // namespace assay::cuda_host
