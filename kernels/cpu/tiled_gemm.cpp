// Our own product for small and odd sizes: register tiles of 12 rows by two AVX-512 vectors (6 by two AVX2 ones),
// masked at the right edge, so that no size is padded and only the tensors are touched. Large products are blocked and
// packed after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008.
#include <cstring>

#include "serve/scratch.hpp"
#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/threads.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tiled_gemm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/gemm_tile-inl.hpp"
#include "kernels/cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace {

// Blocks of the large product: kBlockK rows of a column panel of B stay in the first-level cache, a block of A
// (kBlockM by kBlockK, 192 KiB) and one of B (kBlockK by kBlockN, 512 KiB) in the second.
constexpr Index kBlockK = 256;
constexpr Index kBlockM = 192;
constexpr Index kBlockN = 512;
/// Below this volume m·k·n packing costs more than it saves (measured, see tests/bench).
constexpr Index kDirectVolume = 192 * 192 * 192;

Index ceil_div(Index x, Index y) { return (x + y - 1) / y; }

/// Packs columns [j, j + cols) of op(B), rows [p, p + k), as panel[k][kTileCols], with zeros past the last column.
void pack_b(const GemmOperand& b, Index p, Index k, Index j, Index cols, float* panel) {
  if (cols < kTileCols) std::memset(panel, 0, static_cast<std::size_t>(k * kTileCols) * sizeof(float));
  if (b.transposed) {
    transpose_block(FloatTag(), cols, k, b.data + j * b.ld + p, b.ld, panel, kTileCols);
  } else {
    for (Index q = 0; q < k; ++q)
      std::memcpy(panel + q * kTileCols, b.data + (p + q) * b.ld + j, static_cast<std::size_t>(cols) * sizeof(float));
  }
}

/// Packs rows [i, i + rows) of op(A), columns [p, p + k), as panel[k][rows].
void pack_a(const GemmOperand& a, Index i, Index rows, Index p, Index k, float* panel) {
  if (a.transposed) {
    for (Index q = 0; q < k; ++q)
      std::memcpy(panel + q * rows, a.data + (p + q) * a.ld + i, static_cast<std::size_t>(rows) * sizeof(float));
  } else {
    transpose_block(FloatTag(), rows, k, a.data + i * a.ld + p, a.ld, panel, rows);
  }
}

/// Calls f(first, rows) for m rows cut into the fewest tiles of at most `most` rows, as even as possible: two tiles of
/// 9 and 8 rows keep more chains in flight than 12 and 5.
template <class F>
HWY_INLINE void for_each_row_tile(Index m, Index most, const F& f) {
  if (m <= most) return f(0, m);
  const Index tiles = ceil_div(m, most);
  // Avoid the division for two tiles: it is measurable in a product of 16x16x16.
  const Index rows = tiles == 2 ? m / 2 : m / tiles;
  const Index taller = m - rows * tiles;
  for (Index tile = 0, i = 0; tile < tiles; ++tile) {
    f(i, rows + (tile < taller ? 1 : 0));
    i += rows + (tile < taller ? 1 : 0);
  }
}

/// Computes columns [j, j + cols) of C. op(B) is read in place from g.b if untransposed; its column j is at b. k <=
/// kBlockK.
template <bool kTransposedA>
HWY_INLINE void multiply_columns(const GemmCall& g, Index j, Index cols, const float* b) {
  const Index vectors = cols > kLanes ? 2 : 1;
  for_each_row_tile(g.m, tile_rows(vectors), [&](Index i, Index rows) {
    tile_function<kTransposedA>(rows, vectors)(g, g.a.data + (kTransposedA ? i : i * g.a.ld), b, g.c + i * g.ldc + j,
                                               g.addend ? g.addend + i * g.addend_ld + j : nullptr,
                                               cols - (vectors - 1) * kLanes);
  });
}

template <bool kTransposedA>
HWY_NOINLINE void multiply_copied_columns(const GemmCall& g, Index j, Index cols) {
  HWY_ALIGN float panel[kBlockK * kTileCols];
  pack_b(g.b, 0, g.k, j, cols, panel);
  GemmCall copied = g;
  copied.b.ld = kTileCols;
  multiply_columns<kTransposedA>(copied, j, cols, panel);
}

/// Computes small products. A is read in place; so is B, unless it is transposed or its last vector would be read past
/// its end. k <= kBlockK.
template <bool kTransposedA>
void multiply_direct(const GemmCall& g) {
  for (Index j = 0; j < g.n; j += kTileCols) {
    const Index cols = std::min(kTileCols, g.n - j);
    const bool copied = g.b.transposed || (!kMasksSuppressFaults && cols % kLanes != 0);
    if (copied) multiply_copied_columns<kTransposedA>(g, j, cols);
    else multiply_columns<kTransposedA>(g, j, cols, g.b.data + j);
  }
}

/// Multiplies one packed block of A by one packed block of B: C = scale A[rows, k] · B[k, cols] + addend.
void multiply_packed(const float* a, Index rows, const float* b, Index cols, Index k, float* c, Index ldc, float scale,
                     const float* addend, Index addend_ld) {
  GemmCall steps;
  steps.k = k;
  steps.b.ld = kTileCols;
  steps.ldc = ldc;
  steps.scale = scale;
  steps.addend_ld = addend_ld;
  for (Index j = 0; j < cols; j += kTileCols) {
    const Index width = std::min(kTileCols, cols - j), vectors = width > kLanes ? 2 : 1;
    // Use the row tiles that A was packed in, also for narrow panels.
    for_each_row_tile(rows, tile_rows(2), [&](Index i, Index tile) {
      steps.a.ld = tile;
      tile_function<true>(tile, vectors)(steps, a + i * k, b + j * k, c + i * ldc + j,
                                         addend ? addend + i * addend_ld + j : nullptr, width - (vectors - 1) * kLanes);
    });
  }
}

/// Floats of the packed blocks of A and of B.
struct Sizes {
  Index a, b;
  explicit Sizes(const GemmCall& g) {
    const Index depth = std::min(g.k, kBlockK);
    a = std::min(g.m, kBlockM) * depth;
    b = ceil_div(std::min(g.n, kBlockN), kTileCols) * kTileCols * depth;
  }
};

/// Computes large products: packs blocks of A and B in the order in which the tiles read them.
void multiply_blocks(const GemmCall& g, float* a, float* b) {
  for (Index j = 0; j < g.n; j += kBlockN) {
    const Index cols = std::min(kBlockN, g.n - j);
    for (Index p = 0; p < g.k; p += kBlockK) {
      const Index k = std::min(kBlockK, g.k - p);
      for (Index q = 0; q < cols; q += kTileCols) pack_b(g.b, p, k, j + q, std::min(kTileCols, cols - q), b + q * k);
      for (Index i = 0; i < g.m; i += kBlockM) {
        const Index rows = std::min(kBlockM, g.m - i);
        for_each_row_tile(rows, tile_rows(2), [&](Index r, Index tile) { pack_a(g.a, i + r, tile, p, k, a + r * k); });
        float* const c = g.c + i * g.ldc + j;
        // Later blocks of k are added to the earlier ones.
        const float* const addend = p > 0 ? c : g.addend ? g.addend + i * g.addend_ld + j : nullptr;
        multiply_packed(a, rows, b, cols, k, c, g.ldc, g.scale, addend, p > 0 ? g.ldc : g.addend_ld);
      }
    }
  }
}

/// Each thread has columns of C, or rows of a high one.
void multiply_blocked(const GemmCall& g) {
  const bool by_columns = g.n >= g.m;
  const Index count = by_columns ? g.n : g.m, unit = by_columns ? kTileCols : tile_rows(2);
  const Index threads = threads_for(g.m * g.k * g.n, ceil_div(count, unit));
  const Sizes sizes(g);
  const Scratch<float> a(static_cast<std::size_t>(threads * sizes.a)), b(static_cast<std::size_t>(threads * sizes.b));
  on_threads(threads, [&](Index thread) {
    const auto [begin, end] = share(count, unit, thread, threads);
    const Index i = by_columns ? 0 : begin, j = by_columns ? begin : 0;
    GemmCall part = g;
    (by_columns ? part.n : part.m) = end - begin;
    part.a.data += g.a.transposed ? i : i * g.a.ld;
    part.b.data += g.b.transposed ? j * g.b.ld : j;
    part.c += i * g.ldc + j;
    if (g.addend != nullptr) part.addend += i * g.addend_ld + j;
    multiply_blocks(part, a.data() + thread * sizes.a, b.data() + thread * sizes.b);
  });
}

void multiply(const GemmCall& g) {
  // A single tile of rows or columns uses each element of B or A once: packing cannot pay.
  const bool direct = g.m <= tile_rows(2) || g.n <= kTileCols || g.m * g.k * g.n <= kDirectVolume;
  if (g.k > kBlockK || !direct) return multiply_blocked(g);
  if (g.a.transposed) return multiply_direct<true>(g);
  multiply_direct<false>(g);
}

}  // namespace
}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(multiply);

void tiled_gemm(const GemmCall& call) {
  if (call.m == 0 || call.n == 0) return;
  if (call.k == 0) return fill_with_addend(call);
  HWY_DYNAMIC_DISPATCH(multiply)(call);
}

}  // namespace assay::cpu
#endif
