// Stands in for CUDA's mma.h: the WMMA API in software, for TF32, binary16 and bfloat16 (CUDA programming guide, "Warp Matrix
// Functions"). The 16-bit types are those of core/half.hpp.
#pragma once

#include "core/half.hpp"
#include "cuda_runtime.h"
#include "runtime/cuda_host/wmma.hpp"

namespace assay::cuda_host::nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
namespace precision {
struct tf32 {};
}  // namespace precision
enum layout_t { mem_row_major, mem_col_major };

/// A lane's part of a matrix: element e of lane l is element 32 e + l in row-major order, for every kind.
template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment;
template <class Layout>
struct fragment<matrix_a, 16, 16, 8, precision::tf32, Layout> {
  static constexpr int num_elements = 4, columns = 8;
  float x[num_elements];
};
template <class Layout>
struct fragment<matrix_b, 16, 16, 8, precision::tf32, Layout> {
  static constexpr int num_elements = 4, columns = 16;
  float x[num_elements];
};
template <int k>
struct fragment<accumulator, 16, 16, k, float, void> {
  static constexpr int num_elements = 8, columns = 16;
  float x[num_elements];
};
template <class T, class Layout>
struct fragment<matrix_a, 16, 16, 16, T, Layout> {
  static constexpr int num_elements = 8, columns = 16;
  T x[num_elements];
};
template <class T, class Layout>
struct fragment<matrix_b, 16, 16, 16, T, Layout> {
  static constexpr int num_elements = 8, columns = 16;
  T x[num_elements];
};

/// Offset of element e of this lane in memory.
template <class Fragment>
std::size_t offset(int e, unsigned leading_dimension, bool by_rows) {
  const unsigned at = 32 * static_cast<unsigned>(e) + lane();
  const unsigned row = at / Fragment::columns, column = at % Fragment::columns;
  return by_rows ? std::size_t{row} * leading_dimension + column : std::size_t{column} * leading_dimension + row;
}

template <class Use, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 8, precision::tf32, Layout>& f, const float* memory, unsigned ld,
                      Site site = Site::current()) {
  check_fragment(memory, ld, site);
  using Fragment = fragment<Use, 16, 16, 8, precision::tf32, Layout>;
  for (int e = 0; e < f.num_elements; ++e) f.x[e] = memory[offset<Fragment>(e, ld, std::is_same_v<Layout, row_major>)];
}
template <class Use, class T, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& f, const T* memory, unsigned ld, Site site = Site::current()) {
  check_fragment(memory, ld / 2, site);
  using Fragment = fragment<Use, 16, 16, 16, T, Layout>;
  for (int e = 0; e < f.num_elements; ++e) f.x[e] = memory[offset<Fragment>(e, ld, std::is_same_v<Layout, row_major>)];
}
template <int k>
using Accumulator = fragment<accumulator, 16, 16, k, float>;
template <int k>
void load_matrix_sync(Accumulator<k>& f, const float* memory, unsigned ld, layout_t layout, Site site = Site::current()) {
  check_fragment(memory, ld, site);
  for (int e = 0; e < f.num_elements; ++e) f.x[e] = memory[offset<Accumulator<k>>(e, ld, layout == mem_row_major)];
}
template <int k>
void store_matrix_sync(float* memory, const Accumulator<k>& f, unsigned ld, layout_t layout, Site site = Site::current()) {
  check_fragment(memory, ld, site);
  for (int e = 0; e < f.num_elements; ++e) memory[offset<Accumulator<k>>(e, ld, layout == mem_row_major)] = f.x[e];
}
template <int k>
void fill_fragment(Accumulator<k>& f, float value) {
  for (float& x : f.x) x = value;
}
template <class LayoutA, class LayoutB>
void mma_sync(Accumulator<8>& d, const fragment<matrix_a, 16, 16, 8, precision::tf32, LayoutA>& a,
              const fragment<matrix_b, 16, 16, 8, precision::tf32, LayoutB>& b, const Accumulator<8>& c,
              Site site = Site::current()) {
  mma_tf32({a.x, b.x, c.x, d.x}, site);
}
template <class T, class LayoutA, class LayoutB>
void mma_sync(Accumulator<16>& d, const fragment<matrix_a, 16, 16, 16, T, LayoutA>& a,
              const fragment<matrix_b, 16, 16, 16, T, LayoutB>& b, const Accumulator<16>& c, Site site = Site::current()) {
  float left[8], right[8];
  for (int e = 0; e < 8; ++e) left[e] = widen(a.x[e]), right[e] = widen(b.x[e]);
  mma_16_bits({left, right, c.x, d.x}, site);
}
inline float __float_to_tf32(float x) { return to_tf32(x); }

}  // namespace assay::cuda_host::nvcuda::wmma
