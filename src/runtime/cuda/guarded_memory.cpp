#include "runtime/cuda/guarded_memory.hpp"

#include <bit>
#include <string>

namespace assay {
namespace {

/// Unmapped address space on either side of a piece: covers an index that is wrong by a few rows.
constexpr std::size_t kGuardPage = std::size_t{1} << 28;
/// Larger pieces are not kept for reuse.
constexpr std::size_t kKept = std::size_t{1} << 26;

template <class F>
void find(F& function, const char* name, unsigned version, const GuardedMemory::Check& check) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check("cudaGetDriverEntryPointByVersion",
        cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess || found == nullptr)
    throw Unavailable("CUDA memory between guard pages", std::string("the driver has no ") + name);
  function = reinterpret_cast<F>(found);
}

CUmemAllocationProp on_device(int ordinal) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
  return properties;
}

void require(const char* call, CUresult result, const GuardedMemory::Check& check) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw Unavailable("CUDA memory", std::string(call) + " found none left");
  check(call, static_cast<cudaError_t>(result));
}

}  // namespace

void GuardedMemory::load(int ordinal, const Check& check) {
  constexpr unsigned kVersion = 10020;  // CUDA 10.2 introduced these calls
  find(driver_.granularity, "cuMemGetAllocationGranularity", kVersion, check);
  find(driver_.reserve, "cuMemAddressReserve", kVersion, check);
  find(driver_.unreserve, "cuMemAddressFree", kVersion, check);
  find(driver_.create, "cuMemCreate", kVersion, check);
  find(driver_.release, "cuMemRelease", kVersion, check);
  find(driver_.map, "cuMemMap", kVersion, check);
  find(driver_.unmap, "cuMemUnmap", kVersion, check);
  find(driver_.set_access, "cuMemSetAccess", kVersion, check);
  const CUmemAllocationProp properties = on_device(ordinal);
  std::size_t granularity = 0;
  require("cuMemGetAllocationGranularity",
          driver_.granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), check);
  granularity_ = granularity;
}

GuardedMemory::Piece GuardedMemory::mapped(std::size_t bytes, int ordinal, const Check& check) {
  CUdeviceptr reserved = 0;
  require("cuMemAddressReserve", driver_.reserve(&reserved, bytes + 2 * kGuardPage, 0, 0, 0), check);
  const CUmemAllocationProp properties = on_device(ordinal);
  CUmemGenericAllocationHandle memory{};
  const CUdeviceptr begin = reserved + kGuardPage;
  CUresult result = driver_.create(&memory, bytes, &properties, 0);
  if (result == CUDA_SUCCESS) {
    result = driver_.map(begin, bytes, 0, memory, 0);
    driver_.release(memory);  // the mapping keeps the memory alive
    if (result == CUDA_SUCCESS) {
      const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      result = driver_.set_access(begin, bytes, &access, 1);
      if (result != CUDA_SUCCESS) driver_.unmap(begin, bytes);
    }
  }
  if (result != CUDA_SUCCESS) driver_.unreserve(reserved, bytes + 2 * kGuardPage);
  require("cuMemCreate, cuMemMap or cuMemSetAccess", result, check);
  return {begin, bytes};
}

void GuardedMemory::unmap(const Piece& piece) noexcept {
  driver_.unmap(piece.begin, piece.bytes);
  driver_.unreserve(piece.begin - kGuardPage, piece.bytes + 2 * kGuardPage);
}

void* GuardedMemory::allocate(std::size_t bytes, GuardPage guard_page, int ordinal, const Check& check) {
  if (granularity_ == 0) load(ordinal, check);
  const std::size_t size = std::bit_ceil((bytes + granularity_ - 1) / granularity_) * granularity_;
  std::vector<Piece>& kept = free_[size];
  Piece piece;
  if (kept.empty()) {
    piece = mapped(size, ordinal, check);
  } else {
    piece = kept.back();
    kept.pop_back();
  }
  const CUdeviceptr first = guard_page == GuardPage::behind ? piece.begin + piece.bytes - bytes : piece.begin;
  void* const address = reinterpret_cast<void*>(first);
  used_[address] = piece;
  return address;
}

void GuardedMemory::release(const void* address) noexcept {
  const Piece piece = used_.extract(address).mapped();
  if (piece.bytes > kKept) unmap(piece);
  else free_[piece.bytes].push_back(piece);
}

}  // namespace assay
