// The reference of each operation, instantiated for every number type. Generated code (<op>_oracle.cpp) fills it, one
// translation unit per operation.
#pragma once

#include <complex>
#include <span>
#include <string_view>

#include "core/bounded.hpp"
#include "core/dual.hpp"
#include "core/view.hpp"

namespace assay::falsify {

/// Runs a reference on tensors in contract order; outputs are overwritten, inputs are not written.
template <class T>
using ReferenceFn = void (*)(std::span<const View<T>> tensors, std::span<const double> params);

struct AuditOracle;  // audit_oracle.hpp

struct Oracle {
  ReferenceFn<float> mirror = nullptr;                       ///< result of plain float32 code
  ReferenceFn<double> exact = nullptr;                       ///< the oracle value
  ReferenceFn<Bounded> bounded = nullptr;                    ///< the oracle value with its error bounds
  ReferenceFn<Dual<double>> dual = nullptr;                  ///< directional derivatives
  ReferenceFn<std::complex<double>> complex_step = nullptr;  ///< derivatives by complex step
  const AuditOracle* digits50 = nullptr;                     ///< audit of `exact`
};

/// Throws InputError if there is no such operation.
const Oracle& oracle(std::string_view op);

}  // namespace assay::falsify
