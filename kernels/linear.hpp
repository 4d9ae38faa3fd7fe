// y = x · Wᵀ + bias as one product; the back end supplies the product.
#pragma once

#include "kernels/affine_product.hpp"
#include "ops/linear.hpp"
#include "runtime/device.hpp"

namespace assay {

/// y[i,o] = sum_p x[i,p] weight[o,p] + bias[0,o]
///   x (s,in), weight (out,in), bias (biases,out), y (s,out): of one storage format, rows dense; y shares no memory with
///   the inputs.
/// Error at most (in + 1) u (|x| |W|ᵀ + |bias|), and half a unit of the format of y. 2 s in out operations.
template <void (*multiply)(const AffineProduct&, Device&)>
void linear_by(const ops::LinearArgs& args, Device& device) {
  multiply({.a = args.x, .b = args.weight, .b_transposed = true, .c = args.y, .addend = args.bias}, device);
}

}  // namespace assay
