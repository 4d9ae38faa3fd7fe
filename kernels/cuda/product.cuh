// The three matrix products as one problem: C[m,n] = op(A)[m,k] · op(B)[k,n], rows dense.
#pragma once

#include <algorithm>

#include "core/view.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"
// After launch.hpp, which names the namespace.
#include "kernels/cuda/storage.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// A is [m,k], or [k,m] if a kernel's first flag says transposed; B is [k,n], or [n,k]; C is [m,n]. C shares no memory
/// with A or B. Element (i, j) of a matrix is at i * ld + j; addresses are aligned to an element; offsets take 64 bits.
/// A is stored as S, B as SB, C as Out. Sums are float32, and rounded once to Out.
template <class S, class Out = S, class SB = S>
struct ProductOf {
  int m, k, n;
  const S* a;
  const SB* b;
  Out* c;
  Index a_ld, b_ld, c_ld;
};
using Product = ProductOf<float>;

/// Epilogue: maps sums to elements of C, one or four neighbours of a row, from (row, column) on; skip_rows(n) makes row
/// n the first. add_to_block() adds what the threads of a block of outputs compute together (mma_product.cuh).
struct Plain {
  void skip_rows(Index /*count*/) {}
  template <class Block, class Sums>
  __device__ void add_to_block(const Block& /*block*/, Sums& /*sums*/) const {}
  template <class T>
  __device__ T operator()(T sum, int /*row*/, int /*column*/) const {
    return sum;
  }
};

/// scale sum + addend[row * ld + column]; without an addend (null), scale sum. Rows of the addend are aligned to 16
/// bytes if those of C are.
struct Affine {
  float scale;
  const float* addend;
  Index ld;

  void skip_rows(Index count) {
    if (addend != nullptr) addend += count * ld;
  }
  __device__ float operator()(float sum, int row, int column) const {
    return addend == nullptr ? scale * sum : scale * sum + addend[row * ld + column];
  }
  __device__ float4 operator()(float4 v, int row, int column) const {
    const float4 at = addend == nullptr ? make_float4(0.0f, 0.0f, 0.0f, 0.0f)
                                        : *reinterpret_cast<const float4*>(addend + row * ld + column);
    return make_float4(scale * v.x + at.x, scale * v.y + at.y, scale * v.z + at.z, scale * v.w + at.w);
  }
};

/// sum + bias[column]; without a bias (null), sum.
template <class S>
struct Biased {
  const S* bias;

  template <class Block, class Sums>
  __device__ void add_to_block(const Block& /*block*/, Sums& /*sums*/) const {}
  __device__ float operator()(float sum, int /*row*/, int column) const {
    return bias == nullptr ? sum : sum + load(bias[column]);
  }
};

/// Returns the leading dimension of a matrix, or its width if there is no second row to give the stride a meaning.
template <AnyView V>
Index leading_dimension(const V& matrix) {
  return matrix.dim(0) > 1 ? matrix.stride(0) : std::max<Index>(matrix.dim(1), 1);
}

/// Builds the product from MatmulArgs, MatmulNtArgs or MatmulTnArgs.
template <class S, class Out, class Args>
ProductOf<S, Out> product_of(const Args& args) {
  return {static_cast<int>(args.m),
          static_cast<int>(args.k),
          static_cast<int>(args.n),
          static_cast<const S*>(args.a.data()),
          static_cast<const S*>(args.b.data()),
          static_cast<Out*>(args.c.data()),
          leading_dimension(args.a),
          leading_dimension(args.b),
          leading_dimension(args.c)};
}

/// Returns true if every row starts at a multiple of `bytes`.
template <class S>
__host__ __device__ bool rows_start_at(const S* matrix, Index ld, int bytes) {
  return reinterpret_cast<std::uintptr_t>(matrix) % bytes == 0 && ld * static_cast<int>(sizeof(S)) % bytes == 0;
}
/// Returns true if every row starts at a multiple of four elements.
template <class S>
bool vectors(const S* matrix, Index ld) {
  return rows_start_at(matrix, ld, 4 * static_cast<int>(sizeof(S)));
}

inline bool vectors(const Plain&) { return true; }
inline bool vectors(const Affine& affine) { return affine.addend == nullptr || vectors(affine.addend, affine.ld); }

/// Returns element (row, column) of a matrix of rows x columns; 0 outside.
template <class S>
__device__ inline float element_or_zero(const S* matrix, Index ld, int row, int column, int rows, int columns) {
  return row < rows && column < columns ? load(matrix[row * ld + column]) : 0.0f;
}

namespace product_detail {

template <class Run>
struct RunOf;
template <class S_, class Out_>
struct RunOf<void (*)(const ProductOf<S_, Out_>&, Device&)> {
  using S = S_;
  using Out = Out_;
};

}  // namespace product_detail

/// Returns the registry entry of a product, `run`: void (const ProductOf<S, Out>&, Device&); a block computes `rows`
/// rows of C, and the caller adds the differences. Kernels use 32-bit integers for extents, which the contracts limit
/// to 2^20.
template <class Args, auto run, Index rows = 16>
Kernel product_kernel(std::string_view id, std::string_view summary) {
  using Formats = product_detail::RunOf<decltype(run)>;
  return {.id = id,
          .storage = dtype_of<typename Formats::S>,
          .summary = summary,
          .run =
              [](const Call& call, Device& device) {
                const auto product = product_of<typename Formats::S, typename Formats::Out>(Args::unpack(call));
                if (product.m > 0 && product.n > 0) run(product, device);
              },
          .refuse = [](const Call& call) { return refuse_grid("m", Args::unpack(call).m, rows); }};
}

/// Sets the arithmetic that a kernel declares.
inline Kernel declaring(const Arithmetic& arithmetic, Kernel kernel) {
  kernel.arithmetic = arithmetic;
  return kernel;
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
