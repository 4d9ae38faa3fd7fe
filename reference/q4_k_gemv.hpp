// y = W · x for W in Q4_K super-blocks, and the gradient of x.
#pragma once

#include <algorithm>

#include "core/any_formula.hpp"
#include "core/forms.hpp"
#include "core/sum.hpp"
#include "reference/q4_k_dequantize.hpp"

namespace assay::reference {

/// y[i] = sum_p w[i,p] x[p] for w [rows, k] decoded from blocks [rows, ceil(k / 256) 144], x [k], y [rows]; y is
/// overwritten and shares nothing with blocks, x. Kernels may also sum codes times x, and x, by sub-blocks, and scale
/// these sums, d and dmin last: one rounding each. d and dmin may also be applied to the sums of a super-block. O(rows
/// k).
template <class T>
void q4_k_gemv(View<const T> blocks, View<const T> x, View<T> y) {
  for (Index i = 0; i < y.dim(0); ++i) {
    Sum<T> sum, apart, by_super_blocks;
    for (Index super = 0; super < x.dim(0); super += 256) {
      Sum<T> scaled, minima;
      const Q4KParts whole = q4_k_parts(blocks, i, super);
      for (Index first = super; first < std::min<Index>(super + 256, x.dim(0)); first += 32) {
        Sum<T> codes, elements;
        const Q4KParts of = q4_k_parts(blocks, i, first);  // all 32 share one step and one offset
        for (Index p = first; p < std::min<Index>(first + 32, x.dim(0)); ++p) {
          sum += T(q4_k_value(blocks, i, p)) * x(p);
          codes += T(q4_k_parts(blocks, i, p).code) * x(p);
          elements += x(p);
        }
        apart += T(T(of.step) * codes.value()) * T(1);
        apart += T(T(-of.offset) * elements.value()) * T(1);
        scaled += T(of.scale) * codes.value();
        minima += T(of.minimum) * elements.value();
      }
      by_super_blocks += T(T(whole.d) * scaled.value());
      by_super_blocks += T(T(-whole.dmin) * minima.value());
    }
    y(i) = any_formula(sum.value(), any_formula(apart.value(), by_super_blocks.value()));
  }
}

/// dx[p] = sum_i w[i,p] dy[i], overwritten; null data: not wanted. Source: y is linear in x.
template <class T>
void q4_k_gemv_backward(View<const T> blocks, View<const T> /*x*/, View<const T> dy, View<T> dx) {
  if (dx.data() == nullptr) return;
  for (Index p = 0; p < dx.dim(0); ++p) {
    Sum<T> sum;
    for (Index i = 0; i < dy.dim(0); ++i) sum += T(q4_k_value(blocks, i, p)) * dy(i);
    dx(p) = sum.value();
  }
}

}  // namespace assay::reference
