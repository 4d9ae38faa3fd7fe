#include "kernels/cpu/amx.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace assay::cpu::amx {

#if defined(__x86_64__)
// Registers, by number: the intrinsics paste them into the instruction's text.
#define SUM_00 0
#define SUM_01 1
#define SUM_10 2
#define SUM_11 3
#define A_0 4
#define A_1 5
#define B_0 6
#define B_1 7

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
  _tile_zero(SUM_00);
  _tile_zero(SUM_01);
  _tile_zero(SUM_10);
  _tile_zero(SUM_11);
  for (Index at = 0; at < tiles * kElements; at += kElements) {
    _tile_loadd(A_0, a[0] + at, kRowBytes);
    _tile_loadd(A_1, a[1] + at, kRowBytes);
    _tile_loadd(B_0, b[0] + at, kRowBytes);
    _tile_loadd(B_1, b[1] + at, kRowBytes);
    _tile_dpbf16ps(SUM_00, A_0, B_0);
    _tile_dpbf16ps(SUM_01, A_0, B_1);
    _tile_dpbf16ps(SUM_10, A_1, B_0);
    _tile_dpbf16ps(SUM_11, A_1, B_1);
  }
  _tile_stored(SUM_00, sums, kRowBytes);
  _tile_stored(SUM_01, sums + 256, kRowBytes);
  _tile_stored(SUM_10, sums + 512, kRowBytes);
  _tile_stored(SUM_11, sums + 768, kRowBytes);
}
#else
bool available() { return false; }
Configured::Configured() = default;
Configured::~Configured() = default;
void multiply(const std::uint16_t* const*, const std::uint16_t* const*, Index, float*) {}
#endif

}  // namespace assay::cpu::amx
