#include "runtime/cuda_host/wmma.hpp"

#include <algorithm>
#include <bit>

#include "core/half.hpp"
#include "runtime/cuda_host/block_sum.hpp"
#include "runtime/cuda_host/model.hpp"

namespace assay::cuda_host {
namespace {

constexpr int kRows = 16;

float truncated(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffffe000U); }

/// Like add_block() without alignment: a is all zero, or some number is infinite or NaN and only its class matters.
template <int columns>
ASSAY_INLINE void add_unaligned(float (&d)[columns], const float* a, const float (*b)[columns]) {
  for (int j = 0; j < columns; ++j)
    for (int q = 0; q < kBlock; ++q) d[j] = d[j] + a[q] * b[q][j];
}

/// Computes d += a b; `floor` is the smallest normal number of a's and b's format.
template <int depth, int columns>
ASSAY_INLINE void add_product(const float (&a)[kRows][depth], const float (&b)[depth][columns],
                              float (&d)[kRows][columns], double floor = 0x1p-126) {
  const bool inputs_finite = finite(a[0], kRows * depth) && finite(b[0], depth * columns);
  for (int i = 0; i < kRows; ++i)
    for (int k = 0; k < depth; k += kBlock) {
      // Rows beyond the matrix are zeros. An earlier block may have overflowed.
      const bool zeros = std::all_of(a[i] + k, a[i] + k + kBlock, [](float x) { return x == 0; });
      if (inputs_finite && !zeros && finite(d[i], columns)) add_block(d[i], a[i] + k, b + k, floor);
      else add_unaligned(d[i], a[i] + k, b + k);
    }
}

struct MultiplyFragments {
  ASSAY_INLINE static void run(void* const operands[warpSize]) {
    constexpr int kDepth = 8, kColumns = 16;
    float a[kRows][kDepth], b[kDepth][kColumns], d[kRows][kColumns];
    const auto lane = [&](int l) { return static_cast<const WmmaOperand*>(operands[l]); };
    for (int l = 0; l < warpSize; ++l) {
      for (int e = 0; e < 4; ++e) a[(32 * e + l) / kDepth][(32 * e + l) % kDepth] = truncated(lane(l)->a[e]);
      for (int e = 0; e < 4; ++e) b[(32 * e + l) / kColumns][l % kColumns] = truncated(lane(l)->b[e]);
      for (int e = 0; e < 8; ++e) d[(32 * e + l) / kColumns][l % kColumns] = lane(l)->c[e];
    }
    add_product(a, b, d);
    for (int l = 0; l < warpSize; ++l)
      for (int e = 0; e < 8; ++e) lane(l)->d[e] = d[(32 * e + l) / kColumns][l % kColumns];
  }
};

struct MmaOperand {
  const unsigned* a;
  const unsigned* b;
  float* d;
};

/// Returns element n of the one or two elements in a register.
template <MmaInputs inputs>
float element(unsigned bits, int n) {
  const auto half = static_cast<std::uint16_t>(bits >> 16 * n);
  if constexpr (inputs == MmaInputs::f16) return widen(Half{half});
  else if constexpr (inputs == MmaInputs::bf16) return widen(BFloat16{half});
  else return truncated(std::bit_cast<float>(bits));
}

/// Lane l has rows l / 4 and l / 4 + 8 of A and D, and column l / 4 of B.
template <MmaInputs inputs>
struct MultiplyRegisters {
  ASSAY_INLINE static void run(void* const operands[warpSize]) {
    constexpr int kHeld = inputs == MmaInputs::tf32 ? 1 : 2, kDepth = 8 * kHeld, kColumns = 8;
    float a[kRows][kDepth], b[kDepth][kColumns], d[kRows][kColumns];
    for (int l = 0; l < warpSize; ++l) {
      const auto& lane = *static_cast<const MmaOperand*>(operands[l]);
      for (int r = 0; r < 4; ++r)
        for (int n = 0; n < kHeld; ++n)
          a[l / 4 + r % 2 * 8][r / 2 * 4 * kHeld + l % 4 * kHeld + n] = element<inputs>(lane.a[r], n);
      for (int r = 0; r < 2; ++r)
        for (int n = 0; n < kHeld; ++n) b[r * 4 * kHeld + l % 4 * kHeld + n][l / 4] = element<inputs>(lane.b[r], n);
      for (int e = 0; e < 4; ++e) d[l / 4 + e / 2 * 8][l % 4 * 2 + e % 2] = lane.d[e];
    }
    add_product(a, b, d, inputs == MmaInputs::f16 ? 0x1p-14 : 0x1p-126);
    for (int l = 0; l < warpSize; ++l)
      for (int e = 0; e < 4; ++e)
        static_cast<const MmaOperand*>(operands[l])->d[e] = d[l / 4 + e / 2 * 8][l % 4 * 2 + e % 2];
  }
};

#if defined(__x86_64__)
template <class Body>
[[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]] void on_avx512(void* const operands[warpSize],
                                                                                    unsigned) {
  Body::run(operands);
}
template <class Body>
[[gnu::target("avx2")]] void on_avx2(void* const operands[warpSize], unsigned) {
  Body::run(operands);
}
#endif
template <class Body>
void on_any(void* const operands[warpSize], unsigned) {
  Body::run(operands);
}

template <class Body>
Complete best() {
#if defined(__x86_64__)
  static const Complete chosen = __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
                                     ? &on_avx512<Body>
                                 : __builtin_cpu_supports("avx2") ? &on_avx2<Body>
                                                                  : &on_any<Body>;
  return chosen;
#else
  return &on_any<Body>;
#endif
}

struct MatrixRow {
  const std::uint16_t* row;
  unsigned* to;
};

/// Lane l gives the address of row l % 8 of matrix l / 8. From each matrix lane l receives two neighbours of row l / 4,
/// or of column l / 4 if transposed.
template <bool transposed>
void distribute(void* const operands[warpSize], unsigned) {
  const auto lane = [&](int l) { return static_cast<const MatrixRow*>(operands[l]); };
  for (int l = 0; l < warpSize; ++l)
    for (int m = 0; m < 4; ++m) {
      const auto at = [&](int i, int j) { return unsigned{lane(8 * m + i)->row[j]}; };
      const int own = l / 4, first = l % 4 * 2;
      lane(l)->to[m] =
          transposed ? at(first, own) | at(first + 1, own) << 16 : at(own, first) | at(own, first + 1) << 16;
    }
}

}  // namespace

void wmma_tf32(WmmaOperand operand, std::source_location site) {
  together(0xffffffffU, best<MultiplyFragments>(), &operand, site);
}

void mma(MmaInputs inputs, const unsigned (&a)[4], const unsigned (&b)[2], float (&d)[4], std::source_location site) {
  MmaOperand operand{a, b, d};
  const Complete complete = inputs == MmaInputs::tf32  ? best<MultiplyRegisters<MmaInputs::tf32>>()
                            : inputs == MmaInputs::f16 ? best<MultiplyRegisters<MmaInputs::f16>>()
                                                       : best<MultiplyRegisters<MmaInputs::bf16>>();
  together(0xffffffffU, complete, &operand, site);
}

void load_matrices(unsigned (&to)[4], const void* row, bool transposed, std::source_location site) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0)
    fail("misaligned address", "ldmatrix needs rows aligned to 16 bytes", site);
  MatrixRow operand{static_cast<const std::uint16_t*>(row), to};
  together(0xffffffffU, transposed ? &distribute<true> : &distribute<false>, &operand, site);
}

void check_fragment(const void* memory, unsigned leading_dimension, std::source_location site) {
  if (reinterpret_cast<std::uintptr_t>(memory) % 32 != 0 || leading_dimension % 4 != 0)
    fail("misaligned address", "a fragment needs 32-byte alignment and a leading dimension that is a multiple of 4",
         site);
}

float to_tf32(float x) {
  if (std::isnan(x)) return std::bit_cast<float>(0x7fffffffU);
  if (std::isinf(x)) return x;
  return truncated(std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) + 0x1000U));
}

}  // namespace assay::cuda_host
