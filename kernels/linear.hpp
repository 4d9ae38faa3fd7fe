// y = x · Wᵀ + bias as one product; a back end gives the product.
#pragma once

#include "kernels/affine_product.hpp"
#include "ops/linear.hpp"
#include "runtime/device.hpp"

namespace assay {

/// What a kernel does wrong on purpose (falsify/mutants).
enum class LinearFault { none, weight_as_in_out, bias_dropped, stale_output, first_row_only };

/// y[i,o] = sum_p x[i,p] weight[o,p] + bias[0,o]
///   x (s,in), weight (out,in), bias (biases,out), y (s,out): float32, rows dense; y shares no memory with the inputs.
/// Error at most (in + 1) u (|x| |W|ᵀ + |bias|). 2 s in out operations.
template <void (*multiply)(const AffineProduct&, Device&), LinearFault fault = LinearFault::none>
void linear_by(const ops::LinearArgs& args, Device& device) {
  AffineProduct y{.a = args.x, .b = args.weight, .b_transposed = true, .c = args.y, .addend = args.bias};
  if constexpr (fault == LinearFault::weight_as_in_out) {
    y.b = View<const float>(args.weight.data(), {args.in, args.out});
    y.b_transposed = false;
  }
  if constexpr (fault == LinearFault::bias_dropped) y.addend = {};
  if constexpr (fault == LinearFault::stale_output)
    if (args.biases == 0) y.addend = args.y;
  if constexpr (fault == LinearFault::first_row_only) {
    const Index rows = args.s < 1 ? args.s : 1;
    y.a = View<const float>(args.x.data(), {rows, args.in}, args.x.strides());
    y.c = View<float>(args.y.data(), {rows, args.out}, args.y.strides());
  }
  multiply(y, device);
}

}  // namespace assay
