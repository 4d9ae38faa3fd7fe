// Replaces CUDA's mma.h: the WMMA API in software, for TF32 (CUDA programming guide, "Warp Matrix Functions").
#pragma once

#include "cuda_runtime.h"
#include "runtime/cuda_host/wmma.hpp"

namespace assay::cuda_host::toolkit::nvcuda::wmma {

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
template <>
struct fragment<accumulator, 16, 16, 8, float, void> {
  static constexpr int num_elements = 8, columns = 16;
  float x[num_elements];
};

/// Returns the memory offset of element e of this lane.
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
using Accumulator = fragment<accumulator, 16, 16, 8, float>;
inline void store_matrix_sync(float* memory, const Accumulator& f, unsigned ld, layout_t layout,
                              Site site = Site::current()) {
  check_fragment(memory, ld, site);
  for (int e = 0; e < f.num_elements; ++e) memory[offset<Accumulator>(e, ld, layout == mem_row_major)] = f.x[e];
}
inline void fill_fragment(Accumulator& f, float value) {
  for (float& x : f.x) x = value;
}
template <class LayoutA, class LayoutB>
void mma_sync(Accumulator& d, const fragment<matrix_a, 16, 16, 8, precision::tf32, LayoutA>& a,
              const fragment<matrix_b, 16, 16, 8, precision::tf32, LayoutB>& b, const Accumulator& c,
              Site site = Site::current()) {
  wmma_tf32({a.x, b.x, c.x, d.x}, site);
}
inline float __float_to_tf32(float x) { return to_tf32(x); }

}  // namespace assay::cuda_host::toolkit::nvcuda::wmma
