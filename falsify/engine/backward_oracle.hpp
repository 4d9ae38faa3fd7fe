// The backward reference of each operation, instantiated for the number types of the gradient checks. Generated code
// fills it, as it fills the forward oracle, for every operation whose contract has gradients.
#pragma once

#include "falsify/engine/oracle.hpp"

namespace assay::falsify {

/// Tensors of a backward reference, each group in contract order: inputs, saved outputs, upstream gradients of the
/// other outputs, gradients of the differentiable inputs (overwritten; null data: not computed), the other outputs.
/// Params are those of the forward reference.
struct BackwardOracle {
  ReferenceFn<double> exact = nullptr;
  ReferenceFn<Bounded> bounded = nullptr;
  ReferenceFn<Dual<Bounded>> bounded_dual = nullptr;  ///< of the forward reference: bounds on exact derivatives
};

/// Throws InputError if there is no such operation, or if it has no gradients.
const BackwardOracle& backward_oracle(std::string_view op);

}  // namespace assay::falsify
