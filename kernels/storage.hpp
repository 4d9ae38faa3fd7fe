// The formats in which tensors are stored, as host code reads and writes single elements, and calls by them.
#pragma once

#include "core/half.hpp"
#include "core/view.hpp"
#include "runtime/call.hpp"

namespace assay {

constexpr float widen(float x) { return x; }

/// x rounded to nearest as an S holds it.
template <class S>
constexpr S narrow(float x) {
  if constexpr (std::is_same_v<S, Half>) return to_half(x);
  else if constexpr (std::is_same_v<S, BFloat16>) return to_bfloat16(x);
  else return x;
}

/// f(S{}) for the C++ type S of a storage format.
template <class F>
void with_storage(DType dtype, F f) {
  switch (dtype) {
    case DType::f16: return f(Half{});
    case DType::bf16: return f(BFloat16{});
    default: return f(float{});
  }
}

/// Distance between the rows of a matrix, in elements; that of fewer than two rows says nothing, and is their width.
template <AnyView V>
constexpr Index row_stride(const V& v) {
  return v.dim(0) > 1 ? v.stride(0) : v.size();
}

}  // namespace assay
