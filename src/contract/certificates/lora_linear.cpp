#include "contract/certificates/lora_linear.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "contract/certificates/concatenated.hpp"
#include "contract/certificates/elements.hpp"
#include "contract/certificates/freivalds_partial.hpp"

namespace assay::contract {

Certified freivalds_lora(const StorageView& x, const StorageView& weight, const StorageView& bias, View<const float> t,
                         View<const float> b, double alpha, const StorageView& y) {
  const Widened rows(x), columns(weight), added(bias), result(y);
  const Index s = x.dim(0), out = weight.dim(0), r = t.dim(1);
  const float scale = static_cast<float>(alpha) / static_cast<float>(r);
  // Values that overflow when scaled do not overflow in kernels that scale last, and give Inf or NaN in kernels that
  // scale first.
  ExcludedLines left_out(s, out);
  const auto overflows = [scale](float v) { return std::isfinite(v) && !std::isfinite(scale * v); };
  std::vector<float> scaled(static_cast<std::size_t>(out * r));
  for (Index q = 0; q < r; ++q) {
    for (Index o = 0; o < out; ++o) {
      scaled[static_cast<std::size_t>(o * r + q)] = scale * b(o, q);
      if (overflows(b(o, q))) left_out.columns[static_cast<std::size_t>(o)] = true;
    }
    for (Index i = 0; i < s; ++i)
      if (overflows(t(i, q))) left_out.rows[static_cast<std::size_t>(i)] = true;
  }
  const Concatenated left(s, {rows.view(), t, ones_for(added.view(), s)});
  const Concatenated right(out,
                           {columns.view(), View<const float>(scaled.data(), {out, r}), added.view().transposed()});
  const double size = scale;
  return freivalds_partial(
      left_out, left.view(), right.view().transposed(), result.view(),
      {.operations = 3, .absolute = 0x1p-150, .range = std::max({1.0, size, 1 / size}), .result = y.dtype()});
}

}  // namespace assay::contract
