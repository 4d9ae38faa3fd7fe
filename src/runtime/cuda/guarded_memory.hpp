// CUDA device memory between unmapped addresses: an access right before or behind it ends the context with an illegal
// address.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "runtime/device.hpp"

namespace assay {

/// The driver maps pieces of its granularity, 2 MiB. An allocation is placed at the beginning or end of a piece, next
/// to unmapped addresses on that side. Mapping takes far longer than most kernels, so pieces are kept for the next
/// allocation of their size.
class GuardedMemory {
 public:
  /// The device's check(). Driver and runtime share error numbers.
  using Check = std::function<void(const char* call, cudaError_t status)>;

  /// Throws Unavailable if the device does not support such memory or lacks space. If the unmapped side is behind,
  /// `bytes` must be a multiple of the required alignment.
  void* allocate(std::size_t bytes, GuardPage guard_page, int ordinal, const Check& check);
  bool holds(const void* address) const noexcept { return used_.contains(address); }
  /// Frees an allocation of this object. Does not wait: the device must have finished with it.
  void release(const void* address) noexcept;

 private:
  struct Driver {
    decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
    decltype(&cuMemAddressReserve) reserve = nullptr;
    decltype(&cuMemAddressFree) unreserve = nullptr;
    decltype(&cuMemCreate) create = nullptr;
    decltype(&cuMemRelease) release = nullptr;
    decltype(&cuMemMap) map = nullptr;
    decltype(&cuMemUnmap) unmap = nullptr;
    decltype(&cuMemSetAccess) set_access = nullptr;
  };
  struct Piece {
    CUdeviceptr begin = 0;
    std::size_t bytes = 0;
  };
  void load(int ordinal, const Check& check);
  Piece mapped(std::size_t bytes, int ordinal, const Check& check);
  void unmap(const Piece& piece) noexcept;

  Driver driver_;
  std::size_t granularity_ = 0;  ///< 0: not loaded yet
  std::map<std::size_t, std::vector<Piece>> free_;
  std::unordered_map<const void*, Piece> used_;
};

}  // namespace assay
