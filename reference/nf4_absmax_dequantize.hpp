// NF4 block scales decoded from 8-bit codes.
#pragma once

#include "core/nf4_absmax.hpp"
#include "reference/nf4.hpp"

namespace assay::reference {

/// absmax[j,c] = code[codes[i]] absmax2[i / 256] + offset, i = j b + c, for absmax [n, b], codes [256 groups], absmax2
/// [groups], offset [1]; the product is rounded separately or fused. O(n b). Source: Dettmers et al., QLoRA, 2023,
/// section 3.
template <class T>
void nf4_absmax_dequantize(View<const T> codes, View<const T> absmax2, View<const T> offset, View<T> absmax) {
  for (Index j = 0; j < absmax.dim(0); ++j)
    for (Index c = 0; c < absmax.dim(1); ++c) {
      const Index i = j * absmax.dim(1) + c;
      const T entry = AsInput<T>::value(kAbsmaxCode[static_cast<std::size_t>(whole(codes(i)))]);
      absmax(j, c) = T(entry * absmax2(i / kAbsmaxGroup)) + offset(0);
    }
}

}  // namespace assay::reference
