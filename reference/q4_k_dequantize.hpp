// Values of Q4_K super-blocks.
#pragma once

#include "core/forms.hpp"
#include "core/half.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// Parts of value p of a row of super-blocks: step · code - offset, step = d sc and offset = dmin m. Both products are
/// exact floats, so the value has a single rounding. Source: ggml, block_q4_K and get_scale_min_k4.
struct Q4KParts {
  float step, code, offset;
  float d, scale, dmin, minimum;
};

template <class T>
Q4KParts q4_k_parts(View<const T> blocks, Index row, Index p) {
  const Index first = p / 256 * 144, b = p % 256 / 32;
  const auto byte = [&](Index at) { return static_cast<unsigned>(whole(blocks(row, first + at))); };
  const auto half = [&](Index at) { return widen(Half{static_cast<std::uint16_t>(byte(at) | byte(at + 1) << 8)}); };
  const auto scale = b < 4 ? byte(4 + b) & 63 : (byte(8 + b) & 15) | byte(b) >> 6 << 4;
  const auto minimum = b < 4 ? byte(8 + b) & 63 : byte(8 + b) >> 4 | byte(4 + b) >> 6 << 4;
  const auto pair = byte(16 + p % 256 / 64 * 32 + p % 32);
  const auto code = p % 64 < 32 ? pair & 15 : pair >> 4;
  const float d = half(0), dmin = half(2), sc = static_cast<float>(scale), m = static_cast<float>(minimum);
  return {d * sc, static_cast<float>(code), dmin * m, d, sc, dmin, m};
}

template <class T>
float q4_k_value(View<const T> blocks, Index row, Index p) {
  const Q4KParts parts = q4_k_parts(blocks, row, p);
  return parts.step * parts.code - parts.offset;
}

/// y[i,p] = d sc q - dmin m for blocks [rows, ceil(k / 256) 144], y [rows, k]. O(rows k).
template <class T>
void q4_k_dequantize(View<const T> blocks, View<T> y) {
  for (Index i = 0; i < y.dim(0); ++i)
    for (Index p = 0; p < y.dim(1); ++p) y(i, p) = T(q4_k_value(blocks, i, p));
}

}  // namespace assay::reference
