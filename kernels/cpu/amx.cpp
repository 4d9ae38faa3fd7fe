#include "kernels/cpu/amx.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace assay::cpu::amx {

#if defined(__x86_64__)
namespace {

bool ask() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24;  // leaf 7, EDX
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & (kBf16 | kTile)) != (kBf16 | kTile)) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM: tiles are a state on request
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

__attribute__((target("amx-tile"))) void configure() {
  // Static: the intrinsic tells the compiler of its first eight bytes only, and stores to the others would be dropped.
  struct alignas(64) Tiles {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static constexpr Tiles tiles;
  _tile_loadconfig(&tiles);
}
__attribute__((target("amx-tile"))) void release() { _tile_release(); }

}  // namespace

bool available() {
  static const bool is = ask();
  return is;
}

Configured::Configured() { configure(); }
Configured::~Configured() { release(); }

__attribute__((target("amx-tile,amx-bf16"))) void multiply(const std::uint16_t* const a[kSide],
                                                           const std::uint16_t* const b[kSide], Index tiles,
                                                           float* sums) {
  constexpr long kRowBytes = 64;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (Index at = 0; at < tiles * kElements; at += kElements) {
    _tile_loadd(4, a[0] + at, kRowBytes);
    _tile_loadd(5, a[1] + at, kRowBytes);
    _tile_loadd(6, b[0] + at, kRowBytes);
    _tile_loadd(7, b[1] + at, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, kRowBytes);
  _tile_stored(1, sums + 256, kRowBytes);
  _tile_stored(2, sums + 512, kRowBytes);
  _tile_stored(3, sums + 768, kRowBytes);
}
#else
bool available() { return false; }
Configured::Configured() = default;
Configured::~Configured() = default;
void multiply(const std::uint16_t* const*, const std::uint16_t* const*, Index, float*) {}
#endif

}  // namespace assay::cpu::amx
