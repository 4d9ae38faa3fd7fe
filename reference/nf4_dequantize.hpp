// A matrix decoded from NF4 codes.
#pragma once

#include "reference/nf4.hpp"

namespace assay::reference {

/// y[j,p] = code[q[j,p]] absmax[j, p/64], one rounding, for codes [n, 32 b] with two q per byte, absmax [n, b], y [n,
/// k], b = ceil(k / 64); y shares nothing with the inputs. O(n k). Source: Dettmers et al., QLoRA, 2023, section 3,
/// equation 2.
template <class T>
void nf4_dequantize(View<const T> codes, View<const T> absmax, View<T> y) {
  for (Index j = 0; j < y.dim(0); ++j)
    for (Index p = 0; p < y.dim(1); ++p) y(j, p) = nf4_weight(codes, absmax, j, p);
}

}  // namespace assay::reference
