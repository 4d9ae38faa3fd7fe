// The asynchronous instructions of compute capability 9.0 in software, as kernels/cuda/hopper.cuh names them: barriers
// in shared memory that count arrivals and bytes, copies of boxes of a tensor, products of warpgroups, named barriers.
//
// A device performs an operation at any time between its start and the end of the wait for it. The seed chooses one of
// several moments. A copy reads its source and writes its box when it is drawn, at the latest when no thread can
// run without it; until then the box holds garbage. A product reads its operands when the last lane of a warp has
// issued it, or when the warp waits for it; until then its sums hold garbage. The warps of a warpgroup do so each at a
// time of its own. Waits that cannot end are DeviceErrors with code "deadlock", wrong use has other codes. Whatever the
// moments drawn, a copy or a product that no wait orders after another one on its box is an error (boxes.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include "runtime/cuda_host/model.hpp"
#include "runtime/cuda_host/wmma.hpp"

namespace assay::cuda_host {

/// A tensor of up to four axes, from the innermost on, and the box of its first two that a copy takes. Rows of a box have
/// 128 bytes in shared memory, and are swizzled: bits 4 to 6 of an address are those of the element xor bits 7 to 9.
struct HostTensorMap {
  const std::byte* address;
  std::array<std::uint64_t, 4> extents;
  std::array<std::uint64_t, 3> step_bytes;  ///< of the axes after the innermost
  unsigned box_columns, box_rows;
  unsigned element_bytes;
};

/// cuTensorMapEncodeTiled: returns the map. Throws DeviceError for a tensor of so many axes that the driver refuses.
HostTensorMap tensor_map(const HostTensorMap& map, int axes);

/// mbarrier.init, .arrive and .arrive.expect_tx, and a loop of .try_wait.parity. `barrier` lies in shared memory.
void mbarrier_init(std::uint64_t* barrier, unsigned count, std::source_location site);
void mbarrier_arrive(std::uint64_t* barrier, std::source_location site);
void mbarrier_arrive_expect_tx(std::uint64_t* barrier, unsigned bytes, std::source_location site);
void mbarrier_wait(std::uint64_t* barrier, unsigned parity, std::source_location site);

/// fence.proxy.async: copies see the barriers that this thread has initialized, and products what threads have stored.
void fence_proxy_async();
/// cp.async.bulk.tensor: copies the box whose first element has these coordinates, from the innermost on; zeros outside
/// of the tensor. Counts the bytes of the whole box on `barrier`.
void copy_box(void* shared, const HostTensorMap& map, std::uint64_t* barrier, std::array<int, 4> at,
              std::source_location site);

/// Returns the 32-bit address of dynamic shared memory. Where it begins is drawn: a kernel that needs more than its 128
/// bytes of alignment must align it.
unsigned shared_address(const void* pointer);

/// wgmma.mma_async.m64nNk16, or k8 for tf32, with sums in float32, formed as in wmma.hpp. Each thread of a warpgroup
/// gives its N / 2 sums and, unless `a_registers` is null, its four registers of A; both must live until the wait.
struct WgmmaOperands {
  MmaInputs inputs;  ///< tf32: K-major
  int columns;       ///< N
  const unsigned* a_registers;
  std::uint64_t a, b;               ///< matrix descriptors
  bool a_transposed, b_transposed;  ///< elements of a column are neighbours (MN-major)
  bool accumulates;                 ///< false: sums begin at zero
};
void wgmma(const WgmmaOperands& operands, float* sums, std::source_location site);
void wgmma_fence();
void wgmma_commit();
/// wgmma.wait_group: returns when all groups of this warp except the last `groups` are complete.
void wgmma_wait(unsigned groups, std::source_location site);

/// bar.sync: waits for `threads` threads at barrier `id`.
void named_barrier(unsigned id, unsigned threads, std::source_location site);
/// bar.arrive: counts as one of these threads, and does not wait.
void arrive_at_named_barrier(unsigned id, unsigned threads, std::source_location site);

/// All threads of the block, or these lanes of the running warp, have met: each knows what one of them knows to be
/// complete (boxes.hpp).
void share_known();
void share_known(unsigned mask);

/// A thread has left the kernel: it must have waited for everything that it began.
void end_asynchronous_thread();

}  // namespace assay::cuda_host
