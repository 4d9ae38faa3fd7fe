// Host-side reads and writes of single elements by storage format, and dispatch over the formats.
#pragma once

#include "core/half.hpp"
#include "core/view.hpp"
#include "runtime/call.hpp"

namespace assay {

constexpr float widen(float x) { return x; }

/// Rounds x to nearest in the format S.
template <class S>
constexpr S narrow(float x) {
  if constexpr (std::is_same_v<S, Half>) return to_half(x);
  else if constexpr (std::is_same_v<S, BFloat16>) return to_bfloat16(x);
  else return x;
}

/// Calls f(S{}) with the C++ type S of a storage format.
template <class F>
void with_storage(DType dtype, F f) {
  switch (dtype) {
    case DType::f16: return f(Half{});
    case DType::bf16: return f(BFloat16{});
    default: return f(float{});
  }
}

/// Returns the distance between rows of a matrix in elements; the width if there are fewer than two rows, whose stride
/// is meaningless.
template <AnyView V>
constexpr Index row_stride(const V& v) {
  return v.dim(0) > 1 ? v.stride(0) : v.size();
}

}  // namespace assay
