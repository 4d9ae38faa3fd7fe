// Products of matrices in 16 bits, or of one in 16 bits and one in float32: the register tiles of tiled_gemm over
// panels that are widened to float32 while they are packed. Sums stay in float32 until their last term, so that C is
// rounded once. Blocks after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS
// 34(3), 2008.
#include "serve/scratch.hpp"
#include "kernels/cpu/gemm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/widened_gemm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/gemm_tile-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"
#include "kernels/cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::widened::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

// The blocks of tiled_gemm. Sums of kKeptRows by kBlockN (1.5 MiB) are kept over all of k: B is packed once for them.
constexpr Index kBlockK = 256;
constexpr Index kBlockM = 192;
constexpr Index kBlockN = 512;
constexpr Index kKeptRows = 4 * kBlockM;

Index round_up(Index x, Index to) { return (x + to - 1) / to * to; }

struct Operand {
  DType dtype;
  const void* data;
  Index ld;
  bool transposed;

  Operand(const StorageView& matrix, bool is_transposed)
      : dtype(matrix.dtype()), data(matrix.data()), ld(leading_dimension(matrix)), transposed(is_transposed) {}
  template <class S>
  const S* at(Index row, Index column) const {
    return static_cast<const S*>(data) + (transposed ? column * ld + row : row * ld + column);
  }
};

/// scale A · B over k terms.
struct Term {
  Operand a, b;
  Index k;
  float scale;
};

/// to[i * to_ld + j] = from[i * from_ld + j] for i < rows, j < columns.
template <class S>
void widen_rows(const S* from, Index from_ld, Index rows, Index columns, float* to, Index to_ld) {
  const FloatTag d;
  for (Index i = 0; i < rows; ++i)
    for_each_vector(d, columns, [&](Index j, std::size_t count) {
      store_first(d, load_first(d, from + i * from_ld + j, count), to + i * to_ld + j, count);
    });
}

/// Most rows that are packed at once: a panel of B or a tile of A, whichever is larger on the target.
constexpr Index kPackedRows = std::max(kTileCols, tile_rows(2));

/// to[j * to_ld + i] = from[i * from_ld + j] for i < rows, j < columns; at most kPackedRows rows of kBlockK elements.
template <class S>
void widen_transposed(const S* from, Index from_ld, Index rows, Index columns, float* to, Index to_ld) {
  constexpr Index kStep = kBlockK + kLanes;  // rows at multiples of 1 KiB would share the sets of the cache
  HWY_ALIGN float wide[kPackedRows * kStep];
  widen_rows(from, from_ld, rows, columns, wide, kStep);
  transpose_block(FloatTag(), rows, columns, wide, kStep, to, to_ld);
}

/// Packs columns [j, j + cols) of op(B), rows [p, p + k), as panel[k][kTileCols], with zeros past the last column.
void pack_columns(const Operand& b, Index p, Index k, Index j, Index cols, float* panel) {
  if (cols < kTileCols) std::memset(panel, 0, static_cast<std::size_t>(k * kTileCols) * sizeof(float));
  with_storage(b.dtype, [&]<class S>(S) {
    if (b.transposed) widen_transposed(b.at<S>(p, j), b.ld, cols, k, panel, kTileCols);
    else widen_rows(b.at<S>(p, j), b.ld, k, cols, panel, kTileCols);
  });
}

/// Packs rows [i, i + rows) of op(A), columns [p, p + k), as panel[k][rows].
void pack_rows(const Operand& a, Index i, Index rows, Index p, Index k, float* panel) {
  with_storage(a.dtype, [&]<class S>(S) {
    if (a.transposed) widen_rows(a.at<S>(i, p), a.ld, k, rows, panel, rows);
    else widen_transposed(a.at<S>(i, p), a.ld, rows, k, panel, rows);
  });
}

/// sums[rows, cols] = scale A[rows, k] · B[k, cols], or added to what they are. A is packed in tiles of tile_rows(2)
/// rows, B in panels of kTileCols columns.
void multiply_packed(const float* a, Index rows, const float* b, Index cols, Index k, float scale, bool accumulate,
                     float* sums, Index sums_ld) {
  GemmCall steps;
  steps.k = k;
  steps.b.ld = kTileCols;
  steps.scale = scale;
  steps.ldc = steps.addend_ld = sums_ld;
  for (Index j = 0; j < cols; j += kTileCols) {
    const Index width = std::min(kTileCols, cols - j), vectors = width > kLanes ? 2 : 1;
    for (Index i = 0; i < rows; i += tile_rows(2)) {
      const Index tile = std::min(tile_rows(2), rows - i);
      float* const c = sums + i * sums_ld + j;
      steps.a.ld = tile;
      tile_function<true>(tile, vectors)(steps, a + i * k, b + j * k, c, accumulate ? c : nullptr,
                                         width - (vectors - 1) * kLanes);
    }
  }
}

/// Buffers of packed panels, which all blocks of a product share.
struct Panels {
  Panels(Index m, Index k, Index n)
      : a(static_cast<std::size_t>(std::min(m, kBlockM) * std::min(k, kBlockK))),
        b(static_cast<std::size_t>(round_up(std::min(n, kBlockN), kTileCols) * std::min(k, kBlockK))) {}
  Scratch<float> a, b;
};

/// Computes sums of rows [i, i + rows) and columns [j, j + cols) over all of k, or adds them to what the sums are.
void multiply_block(const Term& term, bool accumulate, Index i, Index rows, Index j, Index cols, const Panels& panels,
                    float* sums, Index sums_ld) {
  for (Index p = 0; p < term.k; p += kBlockK) {
    const Index k = std::min(kBlockK, term.k - p);
    for (Index q = 0; q < cols; q += kTileCols)
      pack_columns(term.b, p, k, j + q, std::min(kTileCols, cols - q), panels.b.data() + q * k);
    for (Index r = 0; r < rows; r += kBlockM) {
      const Index height = std::min(kBlockM, rows - r);
      for (Index t = 0; t < height; t += tile_rows(2))
        pack_rows(term.a, i + r + t, std::min(tile_rows(2), height - t), p, k, panels.a.data() + t * k);
      multiply_packed(panels.a.data(), height, panels.b.data(), cols, k, term.scale, accumulate || p > 0,
                      sums + r * sums_ld, sums_ld);
    }
  }
}

/// C = sums + addend for rows [i, i + rows) and columns [j, j + cols), rounded once to the format of C.
template <class S, class Result>
void finish(const AffineProduct& g, const float* sums, Index sums_ld, Index i, Index rows, Index j, Index cols) {
  const FloatTag d;
  Result* const c = g.c.as<Result>().data() + j;
  const S* const addend = g.adds() ? g.addend.as<const S>().data() + j : nullptr;
  const Index c_ld = leading_dimension(g.c), addend_ld = g.adds() ? g.addend_step() : 0;
  for (Index r = 0; r < rows; ++r)
    for_each_vector(d, cols, [&](Index q, std::size_t count) {
      auto sum = load_first(d, sums + r * sums_ld + q, count);
      if (addend != nullptr) sum = hn::Add(load_first(d, addend + (i + r) * addend_ld + q, count), sum);
      store_first(d, sum, c + (i + r) * c_ld + q, count);
    });
}

void multiply_widened(const AffineProduct& g) {
  const Index m = g.m(), n = g.n();
  const Term first{{g.a, g.a_transposed}, {g.b, g.b_transposed}, g.k(), g.scale};
  const Index second_k = g.second_k(), longest = std::max(first.k, second_k);
  const Index sums_ld = std::min(n, kBlockN), kept = std::min(m, kKeptRows) * sums_ld;
  const Panels panels(m, longest, n);
  const Scratch<float> sums(static_cast<std::size_t>(kept), longest == 0);
  for (Index j = 0; j < n; j += kBlockN)
    for (Index i = 0; i < m; i += kKeptRows) {
      const Index rows = std::min(kKeptRows, m - i), cols = std::min(kBlockN, n - j);
      multiply_block(first, false, i, rows, j, cols, panels, sums.data(), sums_ld);
      if (second_k > 0) {
        const Term second{
            {g.second.a, g.second.a_transposed}, {g.second.b, g.second.b_transposed}, second_k, g.second.scale};
        multiply_block(second, first.k > 0, i, rows, j, cols, panels, sums.data(), sums_ld);
      }
      with_storage(g.c.dtype(), [&]<class Result>(Result) {
        with_storage(g.adds() ? g.addend.dtype() : g.c.dtype(),
                     [&]<class S>(S) { finish<S, Result>(g, sums.data(), sums_ld, i, rows, j, cols); });
      });
    }
}

}  // namespace
}  // namespace assay::cpu::widened::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {
namespace widened {
HWY_EXPORT(multiply_widened);
}

void widened_gemm(const AffineProduct& product) {
  if (product.m() == 0 || product.n() == 0) return;
  using namespace widened;
  HWY_DYNAMIC_DISPATCH(multiply_widened)(product);
}

}  // namespace assay::cpu
#endif
