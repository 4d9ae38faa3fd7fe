// Freivalds' check where some results are any kernel's own affair.
#pragma once

#include <vector>

#include "contract/certificates.hpp"

namespace assay::contract {

/// Rows and columns of C that a certificate cannot judge, since correct kernels differ there.
struct LeftOut {
  std::vector<bool> rows, columns;

  LeftOut(Index m, Index n) : rows(static_cast<std::size_t>(m)), columns(static_cast<std::size_t>(n)) {}
  bool any() const;
};

/// freivalds() of everything else. O(m k + k n + m n) memory where something is left out, none otherwise.
Certified freivalds_without(const LeftOut& left_out, View<const float> a, View<const float> b, View<const float> c,
                            const ProductTerms& terms = {});

}  // namespace assay::contract
