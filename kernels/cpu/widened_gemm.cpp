// Products of matrices in 16 bits, or of one in 16 bits and one in float32: the register tiles of tiled_gemm over
// panels that are widened to float32 while they are packed. Sums stay in float32 until their last term, so that C is
// rounded once. Blocks after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS
// 34(3), 2008.
#include "serve/scratch.hpp"
#include "kernels/cpu/amx.hpp"
#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/threads.hpp"

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

/// Packed panels and sums, which all blocks of a thread share.
struct Buffers {
  float *a, *b, *sums;
};

/// Computes sums of rows [i, i + rows) and columns [j, j + cols) over all of k, or adds them to what the sums are.
void multiply_block(const Term& term, bool accumulate, Index i, Index rows, Index j, Index cols, const Buffers& to,
                    Index sums_ld) {
  for (Index p = 0; p < term.k; p += kBlockK) {
    const Index k = std::min(kBlockK, term.k - p);
    for (Index q = 0; q < cols; q += kTileCols)
      pack_columns(term.b, p, k, j + q, std::min(kTileCols, cols - q), to.b + q * k);
    for (Index r = 0; r < rows; r += kBlockM) {
      const Index height = std::min(kBlockM, rows - r);
      for (Index t = 0; t < height; t += tile_rows(2))
        pack_rows(term.a, i + r + t, std::min(tile_rows(2), height - t), p, k, to.a + t * k);
      multiply_packed(to.a, height, to.b, cols, k, term.scale, accumulate || p > 0, to.sums + r * sums_ld, sums_ld);
    }
  }
}

#if HWY_TARGET == HWY_AVX3
/// Terms of a block of tiles: sums in registers are written once for so many.
constexpr Index kTileK = 1024;

/// True if a term's factors are bf16 and go to the matrix unit.
bool by_tiles(const Term& term) {
  return term.a.dtype == DType::bf16 && term.b.dtype == DType::bf16 && amx::available();
}

/// tile[16][32]: `rows` rows of `terms` elements, the rest zeros.
void gather_rows(const BFloat16* from, Index ld, Index rows, Index terms, std::uint16_t* tile) {
  const hn::ScalableTag<std::uint16_t> d;
  const auto* const bits = reinterpret_cast<const std::uint16_t*>(from);
  const auto mask = hn::FirstN(d, static_cast<std::size_t>(terms));
  for (Index i = 0; i < amx::kRows; ++i)
    hn::Store(i < rows ? hn::MaskedLoad(mask, d, bits + i * ld) : hn::Zero(d), d, tile + i * amx::kTerms);
}

/// tile[16][16][2]: rows 2p and 2p + 1 of `columns` columns beside each other, of `terms` rows, the rest zeros.
void gather_pairs(const BFloat16* from, Index ld, Index terms, Index columns, std::uint16_t* tile) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint16_t, decltype(d)> narrow;
  const auto* const bits = reinterpret_cast<const std::uint16_t*>(from);
  const auto mask = hn::FirstN(narrow, static_cast<std::size_t>(columns));
  const auto row = [&](Index p) {
    return p < terms ? hn::PromoteTo(d, hn::MaskedLoad(mask, narrow, bits + p * ld)) : hn::Zero(d);
  };
  for (Index p = 0; p < amx::kTerms; p += 2)
    hn::Store(hn::Or(row(p), hn::ShiftLeft<16>(row(p + 1))), d,
              reinterpret_cast<std::uint32_t*>(tile + p * amx::kRows));
}

/// Exchanges rows and columns of 16 by 16 pairs.
void transpose_pairs(const std::uint16_t* from, std::uint16_t* to) {
  transpose_block(FloatTag(), amx::kRows, amx::kRows, reinterpret_cast<const float*>(from), amx::kRows,
                  reinterpret_cast<float*>(to), amx::kRows);
}

/// Packs 16 rows [i, i + rows) of op(A), or of op(B) transposed, terms [p, p + k): tiles of 32 terms in turn. Rows of
/// memory are rows of the tile, or columns where `across`; `pairs` lie down the columns, as the unit wants B.
void pack_tiles(const Operand& of, bool across, bool pairs, Index i, Index rows, Index p, Index k,
                std::uint16_t* tiles) {
  HWY_ALIGN std::uint16_t gathered[amx::kElements];
  for (Index t = 0; t < k; t += amx::kTerms, tiles += amx::kElements) {
    const Index terms = std::min(amx::kTerms, k - t);
    std::uint16_t* const to = across == pairs ? tiles : gathered;
    const auto* const from = across == of.transposed ? of.at<BFloat16>(i, p + t) : of.at<BFloat16>(p + t, i);
    if (across) gather_pairs(from, of.ld, terms, rows, to);
    else gather_rows(from, of.ld, rows, terms, to);
    if (across != pairs) transpose_pairs(gathered, tiles);
  }
}

/// multiply_block with factors in bf16.
void multiply_tiles(const Term& term, bool accumulate, Index i, Index rows, Index j, Index cols, const Buffers& to,
                    Index sums_ld) {
  constexpr Index kWide = amx::kSide * amx::kRows;
  const amx::Configured configured;
  const FloatTag d;
  const auto scale = hn::Set(d, term.scale);
  auto* const a = reinterpret_cast<std::uint16_t*>(to.a);
  auto* const b = reinterpret_cast<std::uint16_t*>(to.b);
  for (Index p = 0; p < term.k; p += kTileK) {
    const Index k = std::min(kTileK, term.k - p), tiles = (k + amx::kTerms - 1) / amx::kTerms,
                strip = tiles * amx::kElements;
    for (Index q = 0; q < round_up(cols, kWide); q += amx::kRows)
      pack_tiles(term.b, !term.b.transposed, true, j + q, std::clamp<Index>(cols - q, 0, amx::kRows), p, k,
                 b + q / amx::kRows * strip);
    for (Index r = 0; r < rows; r += kBlockM) {
      const Index height = std::min(kBlockM, rows - r);
      for (Index y = 0; y < round_up(height, kWide); y += amx::kRows)
        pack_tiles(term.a, term.a.transposed, false, i + r + y, std::clamp<Index>(height - y, 0, amx::kRows), p, k,
                   a + y / amx::kRows * strip);
      for (Index q = 0; q < cols; q += kWide)
        for (Index y = 0; y < height; y += kWide) {
          HWY_ALIGN float sums[kWide * kWide];
          const std::uint16_t* const left = a + y / amx::kRows * strip;
          const std::uint16_t* const right = b + q / amx::kRows * strip;
          const std::uint16_t* const lefts[] = {left, left + strip};
          const std::uint16_t* const rights[] = {right, right + strip};
          amx::multiply(lefts, rights, tiles, sums);
          for (Index x = 0; x < std::min(kWide, height - y); ++x)
            for (Index half = 0; half < amx::kSide && q + half * amx::kRows < cols; ++half) {
              const auto count = static_cast<std::size_t>(std::min(amx::kRows, cols - q - half * amx::kRows));
              float* const c = to.sums + (r + y + x) * sums_ld + q + half * amx::kRows;
              auto sum = hn::LoadU(
                  d, sums + ((x / amx::kRows * amx::kSide + half) * amx::kRows + x % amx::kRows) * amx::kRows);
              if (term.scale != 1) sum = hn::Mul(sum, scale);
              if (accumulate || p > 0) sum = hn::Add(load_first(d, c, count), sum);
              store_first(d, sum, c, count);
            }
        }
    }
  }
}
#endif

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

/// multiply_block, by the matrix unit where it takes the term.
void multiply_term(const Term& term, bool accumulate, Index i, Index rows, Index j, Index cols, const Buffers& to,
                   Index sums_ld) {
#if HWY_TARGET == HWY_AVX3
  if (by_tiles(term)) return multiply_tiles(term, accumulate, i, rows, j, cols, to, sums_ld);
#endif
  multiply_block(term, accumulate, i, rows, j, cols, to, sums_ld);
}

/// Floats of the panels of A, for so many rows, or of B: of float32, or of tiles of bf16; whole lines of the cache.
Index panel(Index rows, Index unit, Index k) {
  const Index floats = round_up(round_up(rows, unit) * std::min(k, kBlockK), 16);
#if HWY_TARGET == HWY_AVX3
  return std::max(floats, round_up(rows, amx::kSide * amx::kRows) * round_up(std::min(k, kTileK), amx::kTerms) / 2);
#else
  return floats;
#endif
}

/// Computes rows [i0, i1) and columns [j0, j1) of C.
void multiply_part(const AffineProduct& g, Index i0, Index i1, Index j0, Index j1, const Buffers& to, Index sums_ld) {
  const Term first{{g.a, g.a_transposed}, {g.b, g.b_transposed}, g.k(), g.scale};
  for (Index j = j0; j < j1; j += kBlockN)
    for (Index i = i0; i < i1; i += kKeptRows) {
      const Index rows = std::min(kKeptRows, i1 - i), cols = std::min(kBlockN, j1 - j);
      multiply_term(first, false, i, rows, j, cols, to, sums_ld);
      if (g.second_k() > 0) {
        const Term second{
            {g.second.a, g.second.a_transposed}, {g.second.b, g.second.b_transposed}, g.second_k(), g.second.scale};
        multiply_term(second, first.k > 0, i, rows, j, cols, to, sums_ld);
      }
      with_storage(g.c.dtype(), [&]<class Result>(Result) {
        with_storage(g.adds() ? g.addend.dtype() : g.c.dtype(),
                     [&]<class S>(S) { finish<S, Result>(g, to.sums, sums_ld, i, rows, j, cols); });
      });
    }
}

/// Each thread has columns of C, or rows of a high one.
void multiply_widened(const AffineProduct& g) {
  const Index m = g.m(), n = g.n(), longest = std::max(g.k(), g.second_k());
  const bool by_columns = n >= m;
  const Index count = by_columns ? n : m, unit = by_columns ? kTileCols : tile_rows(2);
  const Index threads = threads_for(m * n * (g.k() + g.second_k()), (count + unit - 1) / unit);
  const Index sums_ld = std::min(n, kBlockN), kept = std::min(m, kKeptRows) * sums_ld,
              panel_a = panel(std::min(m, kBlockM), 1, longest), panel_b = panel(sums_ld, kTileCols, longest);
  const Scratch<float> a(static_cast<std::size_t>(threads * panel_a)), b(static_cast<std::size_t>(threads * panel_b)),
      sums(static_cast<std::size_t>(threads * kept), longest == 0);
  on_threads(threads, [&](Index thread) {
    const auto [begin, end] = share(count, unit, thread, threads);
    const Buffers to{a.data() + thread * panel_a, b.data() + thread * panel_b, sums.data() + thread * kept};
    if (by_columns) multiply_part(g, 0, m, begin, end, to, sums_ld);
    else multiply_part(g, begin, end, 0, n, to, sums_ld);
  });
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
