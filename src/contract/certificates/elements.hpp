// Elements of tensors in any storage format, for certificates.
#pragma once

#include "core/half.hpp"
#include "core/view.hpp"

namespace assay::contract {

template <class... I>
double element(const StorageView& v, I... index) {
  switch (v.dtype()) {
    case DType::f16: return widen(v.as<const Half>()(index...));
    case DType::bf16: return widen(v.as<const BFloat16>()(index...));
    default: return v.as<const float>()(index...);
  }
}

/// Rounding error of a store: relative for values of at least `smallest`, unit * smallest below.
struct StorageRounding {
  double unit, smallest;
};
inline StorageRounding storage_rounding(DType dtype) {
  if (dtype == DType::f16) return {0x1p-11, 0x1p-14};
  return {dtype == DType::bf16 ? 0x1p-8 : 0, 0x1p-126};
}

}  // namespace assay::contract
