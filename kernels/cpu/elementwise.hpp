// Rows of a matrix as pointers, for kernels that map over elements.
#pragma once

#include "core/view.hpp"

namespace assay::cpu {

/// Element (i, j) is data[i * ld + j]; ld = 0 gives every row the same elements.
template <class T>
struct Rows {
  T* data;
  Index ld;
};

/// A row-major matrix.
template <class T>
Rows<T> rows_of(const View<T>& matrix) {
  return {matrix.data(), matrix.dim(0) > 1 ? matrix.stride(0) : matrix.dim(1)};
}

}  // namespace assay::cpu
