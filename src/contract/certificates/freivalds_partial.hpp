// Freivalds' check that skips rows and columns on which correct kernels differ.
#pragma once

#include <vector>

#include "contract/certificates.hpp"

namespace assay::contract {

/// Rows and columns of C that a certificate cannot judge, because correct kernels differ there.
struct ExcludedLines {
  std::vector<bool> rows, columns;

  ExcludedLines(Index m, Index n) : rows(static_cast<std::size_t>(m)), columns(static_cast<std::size_t>(n)) {}
  bool any() const;
};

/// Runs freivalds() on all other rows and columns. O(m k + k n + m n) memory if any are left out, otherwise none.
Certified freivalds_partial(const ExcludedLines& left_out, View<const float> a, View<const float> b,
                            View<const float> c, const ProductTerms& terms = {});

}  // namespace assay::contract
