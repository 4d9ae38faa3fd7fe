// Rows of a matrix as pointers, for kernels that map over elements.
#pragma once

#include "kernels/storage.hpp"

namespace assay::cpu {

/// Element (i, j) is data[i * ld + j]; ld = 0 gives every row the same elements.
template <class T>
struct Rows {
  T* data;
  Index ld;
};

/// A row-major matrix, or a vector that is every row.
template <class T>
Rows<T> rows_of(const View<T>& matrix) {
  if (matrix.shape().rank() == 1) return {matrix.data(), 0};
  return {matrix.data(), matrix.dim(0) > 1 ? matrix.stride(0) : matrix.dim(1)};
}
template <class S>
Rows<S> rows_of(const StorageView& matrix) {
  return rows_of(matrix.as<S>());
}

/// Returns the first element of row i of a matrix.
template <class S>
S* row_of(const StorageView& matrix, Index i) {
  return static_cast<S*>(matrix.data()) + i * row_stride(matrix);
}

}  // namespace assay::cpu
